// Chinese texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "删除你的账户？",
    endWhat:
      "你的密钥将失效，运行中的智能体将停止，你的对话、文件、项目和提供商将被删除，钱包余额也会丢失。账单记录会保留，但不含你的姓名。此操作无法撤销。",
    endConfirm: (email) => `输入 ${email} 以确认`,
    endDiffers: "这不是此账户的邮箱。",
  },
};
