// Arabic texts of views that are loaded when first shown.
import { number } from "../locale.js";

export const importTexts = {
  intro:
    "استورد الدردشات من ChatGPT أو Claude أو Open WebUI أو LibreChat أو من تصدير لهذه " +
    "الخدمة. اختر ملف ZIP أو JSON الخاص بالتصدير، بحجم 200 ميغابايت على الأكثر.",
  action: "اختيار ملف",
  sending: (size) => `جارٍ الرفع، ${size} حتى الآن…`,
  reading: (n) => `جارٍ الاستيراد، عدد المحادثات حتى الآن: ${number(n)}…`,
  done: (source) => `اكتمل الاستيراد من ${source}.`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "هذه الخدمة",
  },
  counts: ({ imported, skipped, failed }) =>
    `المحادثات المستوردة: ${number(imported)}، المتجاوزة: ${skipped}، الفاشلة: ${failed}.`,
  details: "عرض كل محادثة",
  statuses: { imported: "مستوردة", skipped: "متجاوزة", failed: "فاشلة" },
  more: (n) => `و${number(n)} أخرى.`,
  undo: "التراجع عن الاستيراد",
  undoTitle: "هل تريد التراجع عن هذا الاستيراد؟",
  undoText:
    "سيُحذف كل ما استُورد، وكذلك ما كتبته في هذه المحادثات منذ ذلك الحين. يمكنك استيراد الملف مرة أخرى.",
  undone: "تم التراجع عن الاستيراد.",
};

export const memoryTexts = {
  intro: "يمكن للدردشات تذكّر هذه الرسائل. تبقى الرسالة المنسية في محادثتها.",
  search: "عرض ما تتذكره الدردشات عند طرح سؤال",
  find: "بحث",
  forgotten: "عرض الرسائل المنسية",
  none: "لا يوجد ما تتذكره الدردشات.",
  noneForgotten: "لا توجد رسائل منسية.",
  forget: "نسيان",
  remember: "تذكّر من جديد",
  done: "لم تعد الدردشات تتذكر هذه الرسالة.",
  roles: { user: "أنت", assistant: "المساعد", system: "النظام" },
};

export const temporaryTexts = {
  hint: "لا يُحفظ شيء ولا تُستخدم الذاكرة. تضيع هذه الدردشة عند إعادة تحميل الصفحة.",
  files: "تقبل الدردشة المؤقتة الملفات النصية فقط، لأنها لا تخزّن شيئًا.",
};

export const projectsTexts = {
  intro: "يجمع المشروع المحادثات وعمليات التشغيل والملفات، ويضيف تعليماته إلى كل دردشة وكل تشغيل لوكيل.",
  none: "لا توجد مشاريع بعد",
  noneText: "يجمع المشروع المحادثات وعمليات التشغيل والملفات مع تعليمات مشتركة.",
  create: "مشروع جديد",
  createAction: "إنشاء مشروع",
  name: "الاسم",
  instructions: "التعليمات",
  instructionsHint: "تُضاف إلى كل محادثة وكل تشغيل لوكيل في هذا المشروع.",
  noInstructions: "بدون تعليمات",
  cap: "الحد الأقصى لخطوات تشغيل الوكيل",
  capHint: "لا يمكن لعمليات التشغيل في هذا المشروع استخدام خطوات أكثر.",
  noCap: "بدون حد",
  back: "كل المشاريع",
  newChat: "دردشة جديدة",
  newRun: "تشغيل جديد",
  files: {
    title: "الملفات",
    none: "لا توجد ملفات بعد",
    noneText:
      "أفلِت المستندات هنا. يمكن لدردشات هذا المشروع وعمليات تشغيله البحث فيها وقراءتها والاقتباس منها.",
    dropHere: "أفلِت الملفات لإضافتها إلى هذا المشروع",
    add: "إضافة ملفات",
    choose: "إضافة ملف موجود",
    addAction: "إضافة",
    addNamed: (name) => `إضافة ${name}`,
    added: "تمت الإضافة",
    remove: (name) => `إزالة ${name}`,
    removed: (name) => `تمت إزالة «${name}». يبقى الملف نفسه.`,
    progress: (read, all) => `جارٍ القراءة: اكتمل ${read} من ${number(all)}`,
    sum: (n, size) => `عدد الملفات: ${number(n)}، حجم النص: ${size}`,
    states: { reading: "جارٍ القراءة…", ready: "جاهز" },
    failed: (reason) => `غير قابل للاستخدام. ${reason}`,
    inChat: (n) => `ملفات المشروع: ${number(n)}`,
    notReady: { reading: "لا يزال قيد القراءة", failed: "غير قابل للاستخدام" },
    manage: "ملفات المشروع",
  },
  conversations: "المحادثات",
  runs: "عمليات تشغيل الوكلاء",
  nothingFiled: "لا شيء هنا بعد.",
  deleteTitle: "هل تريد حذف هذا المشروع؟",
  deleteText: (name) => `سيُحذف «${name}» وتعليماته. تبقى محادثاته وعمليات تشغيله وملفاته.`,
  deleted: (name) => `تم حذف «${name}»`,
};

export const mediaTexts = {
  intro: "أنشئ صورًا وكلامًا. تُحفظ كملفات ناتجة.",
  kinds: { picture: "صورة", sound: "كلام" },
  prompt: "صف الصورة",
  size: "الحجم",
  number: "عدد الصور",
  draw: "توليد",
  drawing: "جارٍ التوليد…",
  again: (prompt) => `استخدام مرة أخرى: ${prompt}`,
  gallery: "المعرض",
  sounds: "الصوت",
  noPictures: "لا توجد صور بعد",
  noSounds: "لا يوجد صوت بعد",
  text: "النص المراد نطقه",
  voice: "الصوت",
  speed: "السرعة",
  cap: "الحد الأقصى للطول",
  capChoice: (minutes, words) => `${minutes} د، حوالي ${words} كلمة`,
  speak: "توليد الكلام",
  speaking: "جارٍ توليد الكلام…",
  truncated: (minutes) => `قُطع الصوت بعد ${minutes}. اختر حدًا أقصى أطول لسماع كل شيء.`,
  spoken: (length) => `${length} من الكلام`,
  keep: "حفظ كملف",
  kept: "تم الحفظ",
  view: (name) => `عرض ${name}`,
  previous: "الصورة السابقة",
  next: "الصورة التالية",
};
