import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "لاستخدام Codex وClaude Code والبرامج النصية وكل أداة متوافقة مع OpenAI أو Anthropic. " +
      "للمفتاح صلاحياتك نفسها، ويبقى صالحًا حتى تحذفه.",
    none: "لا توجد مفاتيح بعد",
    noneText: "أنشئ مفتاحًا منفصلًا لكل برنامج، لتتمكن من حذفه على حدة.",
    create: "مفتاح جديد",
    createAction: "إنشاء مفتاح",
    name: "الاسم",
    nameHint: "مثلًا «حاسوبي المحمول» أو «التقرير الليلي».",
    made: "أُنشئ",
    used: "آخر استخدام",
    neverUsed: "لم يُستخدم قط",
    spent: "أُنفق",
    edit: "تعديل المفتاح",
    editNamed: (name) => `تعديل المفتاح ${name}`,
    deleteNamed: (name) => `حذف المفتاح ${name}`,
    deleteTitle: "هل تريد حذف هذا المفتاح؟",
    deleteText: (name) => `ستتوقف البرامج التي تستخدم «${name}» عن العمل فورًا. لا يمكن التراجع عن ذلك.`,
    deleted: (name) => `تم حذف المفتاح «${name}»`,
    madeTitle: "مفتاحك الجديد",
    once: "انسخه الآن. لن تتمكن من رؤيته مرة أخرى.",
    copyKey: "نسخ المفتاح",
    kept: "تم",
    use: "استخدام مفتاح",
    useHint: "استبدل YOUR_KEY بأحد مفاتيحك.",
    examples: "إعدادات البرامج",
    terminal: "الطرفية",
    programs: {
      codex: "Codex",
      claude: "Claude Code",
      openaiPython: "OpenAI Python",
      openaiJavaScript: "OpenAI JS",
      anthropicPython: "Anthropic Python",
      anthropicJavaScript: "Anthropic JS",
      curl: "curl",
    },
    certificate:
      "تستخدم هذه الخدمة شهادتها الخاصة. على حاسوب آخر، انسخ ملف الشهادة إليه أولًا، وغيّر مساره في المثال.",
  },
};
