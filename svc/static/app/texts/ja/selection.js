// Japanese texts of the selection of conversations.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "会話を選択",
    all: "すべて選択",
    selected: (n) => `${number(n)} 件の会話を選択中`,
    most: (n) => `一度に選択できるのは ${n} 件までです。`,
    done: "完了",
  },
};
