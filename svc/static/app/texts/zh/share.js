// Chinese texts of shared conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const share = {
  dialog: "共享对话",
  about: "任何拥有链接的人都可以阅读对话当前的副本。之后的消息不会添加进去。",
  has: "副本包含标题、带有附加文件文本的问题，以及带有图片的回答。",
  hasNot: "副本不包含你的姓名、指令、引用的历史片段、推理过程、工具的操作，以及你附加的图片。",
  ends: "链接有效期",
  days: (n) => (n ? count(n, "天") : "不限时间"),
  create: "创建链接",
  link: "链接",
  copy: "复制链接",
  once: "请立即复制链接，之后不会再次显示。",
  list: "管理共享链接",
  intro: "每个链接都会向拥有它的人显示一份对话副本。链接本身不会存储，因此无法再次显示。",
  none: "你还没有共享任何对话。",
  sharedOn: (day) => `共享于 ${day}`,
  endsOn: (day) => `${day} 到期`,
  endless: "不限时间",
  end: "停用链接",
  endTitle: "停用此链接？",
  endText: "之后任何人都无法打开它，副本也会被删除。你的对话会保留。",
  ended: "链接已失效。",
  untitled: "无标题",
  readOnly: (day) => `${day} 的副本，无法更改。`,
  gone: "此对话未共享。链接可能已过期或已被停用。",
  goOn: "在我的账户中继续",
  signIn: "登录后继续",
  you: "问题",
  assistant: "回答",
  picture: "回答中的图片",
  cut: "此回答不完整。",
};

export const texts = { ...first, share };
