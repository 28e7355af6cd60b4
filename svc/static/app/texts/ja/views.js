// Japanese texts of views that are loaded when first shown.
import { number } from "../locale.js";

export const importTexts = {
  intro:
    "ChatGPT、Claude、Open WebUI、LibreChat、またはこのサービスのエクスポートからチャットをインポートします。" +
    "エクスポートの ZIP または JSON ファイル（最大 200 MB）を選んでください。",
  action: "ファイルを選択",
  sending: (size) => `アップロード中、現在 ${size}…`,
  reading: (n) => `インポート中、現在 ${number(n)} 件の会話…`,
  done: (source) => `${source} からのインポートが完了しました。`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "このサービス",
  },
  counts: ({ imported, skipped, failed }) =>
    `${number(imported)} 件の会話をインポート、${skipped} 件をスキップ、${failed} 件が失敗しました。`,
  details: "会話ごとに表示",
  statuses: { imported: "インポート済み", skipped: "スキップ", failed: "失敗" },
  more: (n) => `ほか ${number(n)} 件。`,
  undo: "インポートを元に戻す",
  undoTitle: "このインポートを元に戻しますか？",
  undoText:
    "インポートしたものはすべて削除されます。その後これらの会話に書いた内容も含みます。ファイルはもう一度インポートできます。",
  undone: "インポートを元に戻しました。",
};

export const memoryTexts = {
  intro: "チャットで参照されるメッセージです。メモリから外しても、会話には残ります。",
  search: "質問したときに参照される内容を表示",
  find: "検索",
  forgotten: "メモリから外したメッセージを表示",
  none: "参照される内容はありません。",
  noneForgotten: "メモリから外したメッセージはありません。",
  forget: "メモリから外す",
  remember: "メモリに戻す",
  done: "このメッセージは今後参照されません。",
  roles: { user: "あなた", assistant: "アシスタント", system: "システム" },
};

export const temporaryTexts = {
  hint: "何も保存されず、メモリも使われません。再読み込みするとこのチャットは消えます。",
  files: "一時チャットは何も保存しないため、テキストファイルだけを添付できます。",
};

export const projectsTexts = {
  intro:
    "プロジェクトは会話、実行、アーティファクトをまとめ、すべてのチャットとエージェントの実行に指示を加えます。",
  none: "プロジェクトはまだありません",
  noneText: "プロジェクトは会話、実行、アーティファクトを共通の指示とともにまとめます。",
  create: "新しいプロジェクト",
  createAction: "プロジェクトを作成",
  name: "名前",
  instructions: "指示",
  instructionsHint: "このプロジェクトのすべての会話とエージェントの実行に加えられます。",
  noInstructions: "指示なし",
  cap: "エージェントの実行の最大ステップ数",
  capHint: "このプロジェクトの実行は、これより多くのステップを使えません。",
  noCap: "制限なし",
  back: "すべてのプロジェクト",
  newChat: "新しいチャット",
  newRun: "新しい実行",
  files: {
    title: "ファイル",
    none: "ファイルはまだありません",
    noneText:
      "ここに文書をドロップしてください。このプロジェクトのチャットと実行が検索、閲覧、引用できます。",
    dropHere: "ファイルをドロップしてこのプロジェクトに追加",
    add: "ファイルを追加",
    choose: "アーティファクトを追加",
    addAction: "追加",
    addNamed: (name) => `${name} を追加`,
    added: "追加しました",
    remove: (name) => `${name} を外す`,
    removed: (name) => `「${name}」を外しました。アーティファクトは残ります。`,
    progress: (read, all) => `読み込み中：${number(all)} 件中 ${read} 件完了`,
    sum: (n, size) => `${number(n)} 件のファイル、テキスト ${size}`,
    states: { reading: "読み込み中…", ready: "準備完了" },
    failed: (reason) => `使用できません。${reason}`,
    inChat: (n) => `プロジェクトのファイル ${number(n)} 件`,
    notReady: { reading: "読み込み中", failed: "使用できません" },
    manage: "プロジェクトのファイル",
  },
  conversations: "会話",
  runs: "エージェントの実行",
  nothingFiled: "まだ何もありません。",
  deleteTitle: "このプロジェクトを削除しますか？",
  deleteText: (name) => `「${name}」とその指示は削除されます。会話、実行、アーティファクトは残ります。`,
  deleted: (name) => `「${name}」を削除しました`,
};

export const mediaTexts = {
  intro: "画像と音声を作成します。アーティファクトとして保存されます。",
  kinds: { picture: "画像", sound: "音声" },
  prompt: "作りたい画像の説明",
  size: "サイズ",
  number: "画像の枚数",
  draw: "生成",
  drawing: "生成中…",
  again: (prompt) => `もう一度使う：${prompt}`,
  gallery: "ギャラリー",
  sounds: "音声",
  noPictures: "画像はまだありません",
  noSounds: "音声はまだありません",
  text: "読み上げるテキスト",
  voice: "声",
  speed: "速度",
  cap: "最大の長さ",
  capChoice: (minutes, words) => `${minutes} 分、約 ${words} 語`,
  speak: "音声を生成",
  speaking: "音声を生成中…",
  truncated: (minutes) => `音声は ${minutes} で切れました。最後まで聞くには、最大の長さを長くしてください。`,
  spoken: (length) => `音声 ${length}`,
  keep: "アーティファクトとして保存",
  kept: "保存しました",
  view: (name) => `${name} を表示`,
  previous: "前の画像",
  next: "次の画像",
};
