// Chinese texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "比较模型",
  again: "用其他模型回答",
  hint: (most) => `最多选择 ${count(most, "个模型")}。它们会依次回答，对话将以你选用的回答继续。`,
  hintNext: "发送前，消息框中会显示所有模型的预计费用。",
  search: "搜索模型",
  none: "没有匹配的模型。",
  choose: "请先选择一个模型。",
  use: (n) => (n > 1 ? `比较 ${n} 个模型` : "使用此模型"),
  ask: (n) => (n > 1 ? `询问 ${n} 个模型` : "重新生成"),
  title: "比较回答",
  later: "在前面的模型之后回答",
  writing: "正在生成回答",
  take: "使用此回答",
  kept: "其他回答会作为版本保留。",
  failed: "此模型没有回答。",
};

export const texts = { ...first, compare };
