import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "راسل مشغّل هذه الخدمة. يمكن أن تكون لديك محادثة مفتوحة واحدة.",
    pro: "الدعم جزء من Pro",
    proText: `أضف ${limits.least_dollars} دولارات أو أكثر إلى محفظتك للحصول على Pro.`,
    oneActive: "لديك محادثة مفتوحة.",
    open: "فتحها",
    earlier: "المحادثات",
    none: "لا توجد محادثات بعد.",
    untitled: "بدون موضوع",
    statuses: { active: "مفتوحة", closed: "مغلقة" },
    subject: "الموضوع (اختياري)",
    message: "الرسالة",
    messages: "الرسائل",
    send: "إرسال",
    back: "كل المحادثات",
    roles: { user: "أنت", operator: "المشغّل" },
    close: "إغلاق المحادثة",
    closeTitle: "هل تريد إغلاق هذه المحادثة؟",
    closeText: "يمكنك قراءتها لاحقًا وبدء محادثة جديدة.",
    closed: "هذه المحادثة مغلقة.",
  },
};
