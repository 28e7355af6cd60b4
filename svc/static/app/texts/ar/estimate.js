// Arabic texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `التكلفة المقدّرة: حوالي ${usual}، وبحد أقصى ${most}`,
    explained: (limit) =>
      `رسالتك والرسائل السابقة وإجابة بالطول المعتاد. الحد الأقصى لرموز الإجابة: ${number(limit)}.`,
    noFunds: (amount) => `رصيدك البالغ ${amount} لا يكفي لهذه الرسالة.`,
    tooLong: (limit) =>
      `هذا أطول مما يستطيع النموذج قراءته. الحد بالرموز: حوالي ${number(limit)}. اختصر النص ` +
      "أو اختر نموذجًا آخر.",
  },
};
