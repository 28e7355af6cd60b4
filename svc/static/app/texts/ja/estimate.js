// Japanese texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `推定コスト：約 ${usual}、最大 ${most}`,
    explained: (limit) =>
      `メッセージ、これまでのメッセージ、通常の長さの回答の合計です。最大：${number(limit)} トークンの回答。`,
    noFunds: (amount) => `残高 ${amount} では、このメッセージに不足しています。`,
    tooLong: (limit) =>
      `モデルが読める長さを超えています：約 ${number(limit)} トークン。短くするか、別のモデルを選んでください。`,
  },
};
