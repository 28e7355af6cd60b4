import { limits } from "../../limits.js";
import { count, number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "余额",
    available: "可用",
    held: (amount) => `${amount} 被进行中的请求冻结`,
    nothingHeld: "无冻结",
    allowance: (left, whole, day) => `剩余 ${left}，共 ${whole}，将于 ${day} 更新`,
    tierHints: {
      free: `每分钟 ${rates.free} 次聊天。充值 ${limits.least_dollars} 美元或以上可提升至 ${rates.pro} 次。`,
      pro: `每分钟 ${rates.pro} 次聊天，并提供支持`,
    },
    addFunds: "充值",
    testMoney: "测试模式：不会收取真实费用。",
    spend: "支出",
    period: "时间段",
    days: (n) => `过去 ${n} 天`,
    by: "按",
    series: { model: "模型", key: "密钥" },
    session: "网页应用",
    deletedKey: "已删除的密钥",
    others: "其他",
    chartLabel: (n) => `过去 ${n} 天的每日支出。使用左右方向键选择日期。`,
    most: (amount) => `最高的一天：${amount}`,
    noSpend: "此时间段内没有使用记录。",
    onlyFree: "此时间段内只使用了免费模型。",
    asTable: "以表格查看",
    day: "日期",
    requests: "请求",
    input: "输入 token",
    output: "输出 token",
    cost: "费用",
    ledger: "账单",
    filter: "显示",
    kinds: { all: "所有记录", credit: "入账", debit: "扣款" },
    noneOfKind: "没有记录。",
    /** What an entry is for. */
    purposes: {
      funds: () => "充值",
      testFunds: () => "充值（测试资金）",
      allowance: (month) => `额度 ${month}`,
      tokens: (model, input, output) => `${model}：输入 ${number(input)}，输出 ${number(output)} token`,
      cachedTokens: (model, input, cached, output) =>
        `${model}：输入 ${number(input)}（缓存 ${number(cached)}），输出 ${number(output)} token`,
      images: (model, n) => `${model}：${count(n, "张图片")}`,
      searches: (model, n) => `${model}：${count(n, "次搜索")}`,
      speech: (model, n, seconds) => `${model}：${count(n, "个音频 token")}（${seconds} 秒）`,
    },
    searching: (n) => `最近 ${n} 条记录中没有，仍在搜索…`,
    csv: "下载 CSV",
    saving: (n) => `${n} 条记录…`,
    after: "之后余额",
    noLedger: "还没有记录",
    noLedgerText: "你的入账和费用会显示在这里，精确到百万分之一美元。",
  },
  spending: {
    limit: "月度限额",
    limitHint: "每个自然月的美元金额。留空表示不限额。",
    spent: (spent, limit) => `本月已用 ${spent}，限额 ${limit}`,
    none: "你可以限制账户或单个 API 密钥每月的支出。",
    change: "更改限额",
    set: "设置限额",
    keys: "API 密钥的限额",
  },
};
