// Japanese texts of shared conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const share = {
  dialog: "会話を共有",
  about: "リンクを知っている人は誰でも、今の時点の会話のコピーを読めます。以後のメッセージは追加されません。",
  has: "コピーには、タイトル、添付ファイルのテキストを含む質問、画像付きの回答が含まれます。",
  hasNot: "あなたの名前、指示、参照した過去の会話、思考過程、ツールの動作、添付した画像は含まれません。",
  ends: "リンクの有効期間",
  days: (n) => (n ? count(n, "日") : "無期限"),
  create: "リンクを作成",
  link: "リンク",
  copy: "リンクをコピー",
  once: "今すぐリンクをコピーしてください。再び表示されることはありません。",
  list: "共有リンクを管理",
  intro:
    "各リンクは、それを知っている全員に会話のコピーを表示します。リンク自体は保存されないため、再表示できません。",
  none: "共有している会話はありません。",
  sharedOn: (day) => `${day} に共有`,
  endsOn: (day) => `${day} に終了`,
  endless: "無期限",
  end: "リンクを停止",
  endTitle: "このリンクを停止しますか？",
  endText: "誰も開けなくなり、コピーは削除されます。会話は残ります。",
  ended: "リンクは無効になりました。",
  untitled: "無題",
  readOnly: (day) => `${day} 時点のコピーです。変更できません。`,
  gone: "この会話は共有されていません。リンクの期限が切れたか、停止された可能性があります。",
  goOn: "自分のアカウントで続ける",
  signIn: "ログインして続ける",
  you: "質問",
  assistant: "回答",
  picture: "回答の画像",
  cut: "この回答は完了していません。",
};

export const texts = { ...first, share };
