// Chinese texts of the selection of conversations.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "选择对话",
    all: "全选",
    selected: (n) => `已选择 ${number(n)} 个对话`,
    most: (n) => `一次最多可选择 ${n} 个。`,
    done: "完成",
  },
};
