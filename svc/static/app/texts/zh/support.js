import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "给此服务的运营者留言。你可以有一个进行中的对话。",
    pro: "支持是 Pro 的一部分",
    proText: `向钱包充值 ${limits.least_dollars} 美元或以上即可获得 Pro。`,
    oneActive: "你有一个进行中的对话。",
    open: "打开",
    earlier: "对话",
    none: "还没有对话。",
    untitled: "无主题",
    statuses: { active: "进行中", closed: "已关闭" },
    subject: "主题（选填）",
    message: "消息",
    messages: "消息",
    send: "发送",
    back: "所有对话",
    roles: { user: "你", operator: "运营者" },
    close: "关闭对话",
    closeTitle: "关闭此对话？",
    closeText: "你仍可阅读它，并开始新的对话。",
    closed: "此对话已关闭。",
  },
};
