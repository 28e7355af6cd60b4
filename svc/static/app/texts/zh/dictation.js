// Chinese texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError: "浏览器拒绝使用麦克风。请在此网站的设置中允许，然后重试。",
    NotFoundError: "找不到麦克风。请连接麦克风，然后重试。",
    NotReadableError: "其他程序正在使用麦克风。请关闭该程序，然后重试。",
    SecurityError: "浏览器仅允许通过 HTTPS 使用麦克风。请使用 https:// 地址打开此页面。",
    TimeoutError: "没有收到声音。请检查此电脑的麦克风和扬声器，然后重试。",
  },
};

export const texts = { ...first, dictation };
