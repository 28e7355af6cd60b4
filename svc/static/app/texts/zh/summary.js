// Chinese texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "模型读取内容的起点",
    begins: "模型从这里开始读取此聊天，更早的消息超出了它的容量。",
    summarized: "模型从这里开始读取此聊天，并读取更早消息的摘要。",
    summarize: "总结更早的消息",
    again: "重新总结",
    cost: (amount) => `约需 ${amount}`,
    summary: "摘要",
    edit: "编辑摘要",
    remove: "移除摘要",
    save: "保存",
    cancel: "取消",
  },
};
