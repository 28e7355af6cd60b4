import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "このサービスの運営者に連絡できます。進行中の会話は 1 件までです。",
    pro: "サポートは Pro に含まれます",
    proText: `ウォレットに ${limits.least_dollars} ドル以上を追加すると Pro になります。`,
    oneActive: "進行中の会話があります。",
    open: "開く",
    earlier: "会話",
    none: "会話はまだありません。",
    untitled: "件名なし",
    statuses: { active: "進行中", closed: "終了" },
    subject: "件名（任意）",
    message: "メッセージ",
    messages: "メッセージ",
    send: "送信",
    back: "すべての会話",
    roles: { user: "あなた", operator: "運営者" },
    close: "会話を終了",
    closeTitle: "この会話を終了しますか？",
    closeText: "引き続き読むことができ、新しい会話も始められます。",
    closed: "この会話は終了しました。",
  },
};
