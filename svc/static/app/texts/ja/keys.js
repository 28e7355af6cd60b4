import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "Codex、Claude Code、スクリプトなど、OpenAI または Anthropic 互換のツールで使えます。キーはあなたと同じ権限を持ち、削除するまで有効です。",
    none: "キーはまだありません",
    noneText: "個別に削除できるように、プログラムごとにキーを作成してください。",
    create: "新しいキー",
    createAction: "キーを作成",
    name: "名前",
    nameHint: "例：「自分のノートパソコン」「夜間レポート」。",
    made: "作成",
    used: "最終使用",
    neverUsed: "未使用",
    spent: "使用額",
    edit: "キーを編集",
    editNamed: (name) => `キー ${name} を編集`,
    deleteNamed: (name) => `キー ${name} を削除`,
    deleteTitle: "このキーを削除しますか？",
    deleteText: (name) => `「${name}」を使うプログラムはすぐに動作しなくなります。この操作は取り消せません。`,
    deleted: (name) => `キー「${name}」を削除しました`,
    madeTitle: "新しいキー",
    once: "今すぐコピーしてください。後から表示することはできません。",
    copyKey: "キーをコピー",
    kept: "完了",
    use: "キーを使う",
    useHint: "YOUR_KEY を自分のキーに置き換えてください。",
    examples: "プログラムの設定",
    terminal: "ターミナル",
    programs: {
      codex: "Codex",
      claude: "Claude Code",
      openaiPython: "OpenAI Python",
      openaiJavaScript: "OpenAI JS",
      anthropicPython: "Anthropic Python",
      anthropicJavaScript: "Anthropic JS",
      curl: "curl",
    },
    certificate:
      "このサービスは独自の証明書を使います。別のコンピューターでは、まず証明書ファイルをコピーし、例のパスを変更してください。",
  },
};
