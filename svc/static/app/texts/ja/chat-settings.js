// Japanese texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "温度",
    temperatureHint: "0（正確）から 2（多様）まで。空欄の場合はモデルの既定値を使います。",
    maxOutput: "最大出力トークン数",
    maxOutputHint: "回答ごとの上限です。空欄の場合はモデルの既定値を使います。",
  },
};
