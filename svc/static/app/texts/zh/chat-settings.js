// Chinese texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "温度",
    temperatureHint: "从 0（专注）到 2（多样）。留空则使用模型的默认值。",
    maxOutput: "最大输出 token 数",
    maxOutputHint: "每次回答的上限。留空则使用模型的默认值。",
  },
};
