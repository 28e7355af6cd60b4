// Arabic texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "هل تريد حذف حسابك؟",
    endWhat:
      "ستتوقف مفاتيحك عن العمل، وسيتوقف الوكلاء العاملون، وستُحذف محادثاتك وملفاتك ومشاريعك " +
      "ومزوّدوك. سيضيع رصيد محفظتك. تبقى قيود السجل بدون اسمك. لا يمكن التراجع عن ذلك.",
    endConfirm: (email) => `اكتب ${email} للتأكيد`,
    endDiffers: "هذا ليس البريد الإلكتروني لهذا الحساب.",
  },
};
