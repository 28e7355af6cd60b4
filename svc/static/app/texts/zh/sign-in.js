import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  signIn: {
    ...first.signIn,
    lead: "在自己的机器上，拥有自己的 AI 平台。",
    about:
      "一个账户即可使用任何模型服务器聊天、运行智能体、生成图片和音频。每项费用都清晰可见，API 兼容 OpenAI。",
    points: [
      ["chat", "与你的所有模型聊天，并保存对话。"],
      ["agents", "给智能体一个目标，查看每一步。"],
      ["key", "用同一个账户通过 curl、Python 或 JavaScript 访问。"],
    ],
    signUp: "创建账户",
    toSignIn: "已有账户？登录",
    toSignUp: "创建账户",
    signUpAction: "创建账户",
    show: "显示密码",
    hide: "隐藏密码",
    forgot: "忘记密码？",
    forgotTitle: "重置密码",
    forgotText: "我们会通过邮件发送链接，有效期为一小时。",
    forgotAction: "发送链接",
    forgotDone: "如果存在使用此邮箱的账户，我们已发送链接。没有收到邮件？请向此服务的运营者索取链接。",
    forgotNoMail: "此服务不发送邮件。请向运营者索取链接。",
    back: "返回登录",
    closed: "注册已关闭。请联系运营者获取账户。",
    again: "你的会话已过期",
    againText: (email) =>
      `会话有效期为 ${limits.session_hours} 小时。输入 ${email} 的密码以继续。你的内容已保存。`,
    againAction: "继续",
    otherAccount: "使用其他账户",
    linked: "已关联。现在也可以用这种方式登录。",
    trouble: {
      access_denied: "登录已取消，或被提供商拒绝。",
      domain_not_allowed: "你的邮箱域名无法注册。请联系运营者获取账户。",
      email_missing: "提供商没有提供你的邮箱。账户需要邮箱。",
      email_not_verified:
        "提供商没有说明你的邮箱已验证。请告知运营者，或像以前一样登录，然后在设置中关联此登录方式。",
      email_taken: "已存在使用此邮箱的账户。请像以前一样登录，或重置密码，然后在设置中关联此登录方式。",
      identity_taken: "此身份已关联到其他账户。",
      invalid_token: "此次登录已过期，或在其他浏览器中开始。请重试。",
      shutting_down: "服务正在重启，请稍后重试。",
      signup_closed: "注册已关闭，而你没有账户。请联系运营者获取。",
      storage_unavailable: "服务目前无法保存数据，请稍后重试。",
      other: "无法连接提供商，请稍后重试。",
    },
  },
};
