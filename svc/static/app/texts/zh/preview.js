// Chinese texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "预览",
    frame: "预览内容",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "保存为文件",
    saved: (name) => `已将“${name}”保存为文件`,
    show: "显示",
    fullScreen: "全屏",
    note: "此内容无法访问网络或你的账户。",
    failed: "图表有错误：",
    left: "此内容试图加载其他页面，预览已关闭。",
    notLoaded: "无法加载预览。",
  },
};
