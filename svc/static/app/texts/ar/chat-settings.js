// Arabic texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "درجة الحرارة",
    temperatureHint: "من 0 (دقيق) إلى 2 (متنوع). اتركه فارغًا لاستخدام قيمة النموذج.",
    maxOutput: "الحد الأقصى لرموز الإخراج",
    maxOutputHint: "حد كل إجابة. اتركه فارغًا لاستخدام قيمة النموذج.",
  },
};
