// Arabic texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "بداية ما يقرؤه النموذج",
    begins: "يقرأ النموذج هذه الدردشة من هنا. الرسائل السابقة أكثر من أن يستوعبها.",
    summarized: "يقرأ النموذج هذه الدردشة من هنا، مع ملخص للرسائل السابقة.",
    summarize: "تلخيص الرسائل السابقة",
    again: "التلخيص من جديد",
    cost: (amount) => `التكلفة حوالي ${amount}`,
    summary: "الملخص",
    edit: "تعديل الملخص",
    remove: "إزالة الملخص",
    save: "حفظ",
    cancel: "إلغاء",
  },
};
