// Arabic texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError: "يرفض المتصفح استخدام الميكروفون. اسمح به في إعدادات هذا الموقع، ثم حاول مرة أخرى.",
    NotFoundError: "لم يُعثر على ميكروفون. وصّل واحدًا، ثم حاول مرة أخرى.",
    NotReadableError: "يستخدم برنامج آخر الميكروفون. أغلق ذلك البرنامج، ثم حاول مرة أخرى.",
    SecurityError:
      "لا تسمح المتصفحات بالميكروفون إلا عبر HTTPS. افتح هذه الصفحة بعنوانها الذي يبدأ بـ https://.",
    TimeoutError: "لا يصل أي صوت. تحقق من ميكروفون هذا الحاسوب ومكبر صوته، ثم حاول مرة أخرى.",
  },
};

export const texts = { ...first, dictation };
