// Chinese texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `预计费用：约 ${usual}，最多 ${most}`,
    explained: (limit) =>
      `包括你的消息、之前的消息和一个普通长度的回答。最多：一个 ${number(limit)} token 的回答。`,
    noFunds: (amount) => `你的余额为 ${amount}，不足以发送此消息。`,
    tooLong: (limit) => `内容超出模型可读取的长度：约 ${number(limit)} 个 token。请缩短内容或选择其他模型。`,
  },
};
