// Arabic texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const MODELS = { one: "نموذج واحد", two: "نموذجين", few: "# نماذج", many: "# نموذجًا", other: "# نموذج" };
const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "مقارنة النماذج",
  again: "الإجابة بنماذج أخرى",
  hint: (most) =>
    "اختر حتى " +
    `${count(most, MODELS)}. ` +
    "تجيب النماذج واحدًا تلو الآخر، وتستمر المحادثة بالإجابة التي تختارها.",
  hintNext: "تظهر التكلفة المقدّرة للجميع في مربع الرسالة قبل الإرسال.",
  search: "البحث في النماذج",
  none: "لا توجد نماذج مطابقة.",
  choose: "اختر نموذجًا أولًا.",
  use: (n) => (n > 1 ? `مقارنة النماذج (${n})` : "استخدام هذا النموذج"),
  ask: (n) => (n > 1 ? `سؤال النماذج (${n})` : "إعادة التوليد"),
  title: "مقارنة الإجابات",
  later: "يجيب بعد النماذج السابقة",
  writing: "جارٍ توليد الإجابة",
  take: "استخدام هذه الإجابة",
  kept: "تبقى الإجابات الأخرى كنسخ.",
  failed: "لم يُجب هذا النموذج.",
};

export const texts = { ...first, compare };
