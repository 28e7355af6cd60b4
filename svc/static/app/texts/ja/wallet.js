import { limits } from "../../limits.js";
import { number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "残高",
    available: "利用可能",
    held: (amount) => `実行中のリクエストのために ${amount} を確保`,
    nothingHeld: "確保なし",
    allowance: (left, whole, day) => `${whole} のうち残り ${left}、${day} に更新`,
    tierHints: {
      free: `1 分あたり ${rates.free} 件のチャット。${limits.least_dollars} ドル以上の追加で ${rates.pro} 件になります。`,
      pro: `1 分あたり ${rates.pro} 件のチャットとサポート`,
    },
    addFunds: "残高を追加",
    testMoney: "テストモード：実際の請求は発生しません。",
    spend: "使用額",
    period: "期間",
    days: (n) => `過去 ${n} 日間`,
    by: "分類",
    series: { model: "モデル", key: "キー" },
    session: "ウェブアプリ",
    deletedKey: "削除済みのキー",
    others: "その他",
    chartLabel: (n) => `過去 ${n} 日間の 1 日ごとの使用額。左右の矢印キーで日を選べます。`,
    most: (amount) => `最大の日：${amount}`,
    noSpend: "この期間の使用はありません。",
    onlyFree: "この期間は無料モデルだけを使用しました。",
    asTable: "表で表示",
    day: "日",
    requests: "リクエスト",
    input: "入力トークン",
    output: "出力トークン",
    cost: "コスト",
    ledger: "明細",
    filter: "表示",
    kinds: { all: "すべての明細", credit: "入金", debit: "出金" },
    noneOfKind: "明細はありません。",
    /** What an entry is for. */
    purposes: {
      funds: () => "残高の追加",
      testFunds: () => "残高の追加（テスト用）",
      allowance: (month) => `割り当て ${month}`,
      tokens: (model, input, output) => `${model}：入力 ${number(input)}、出力 ${number(output)} トークン`,
      cachedTokens: (model, input, cached, output) =>
        `${model}：入力 ${number(input)}（キャッシュ ${number(cached)}）、出力 ${number(output)} トークン`,
      images: (model, n) => `${model}：画像 ${number(n)} 枚`,
      searches: (model, n) => `${model}：検索 ${number(n)} 回`,
      speech: (model, n, seconds) => `${model}：音声 ${number(n)} トークン（${seconds} 秒）`,
    },
    searching: (n) => `最新の ${n} 件にはありません。検索を続けています…`,
    csv: "CSV でダウンロード",
    saving: (n) => `${n} 件の明細…`,
    after: "残高",
    noLedger: "明細はまだありません",
    noLedgerText: "入金とコストが、100 万分の 1 ドル単位でここに表示されます。",
  },
  spending: {
    limit: "月間上限",
    limitHint: "暦月あたりの米ドル。空欄は上限なしを意味します。",
    spent: (spent, limit) => `今月は ${limit} のうち ${spent} を使用`,
    none: "アカウント全体、または個々の API キーの月間使用額に上限を設定できます。",
    change: "上限を変更",
    set: "上限を設定",
    keys: "API キーの上限",
  },
};
