// Arabic texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "معاينة",
    frame: "محتوى المعاينة",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "حفظ كملف",
    saved: (name) => `تم حفظ «${name}» كملف`,
    show: "عرض",
    fullScreen: "ملء الشاشة",
    note: "لا يمكن للمحتوى الوصول إلى الشبكة أو إلى حسابك.",
    failed: "في المخطط خطأ:",
    left: "حاول المحتوى تحميل صفحة أخرى، فأُغلقت المعاينة.",
    notLoaded: "تعذّر تحميل المعاينة.",
  },
};
