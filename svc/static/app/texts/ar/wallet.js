import { limits } from "../../limits.js";
import { count, number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;
const days = (n) => count(n, { few: "# أيام", many: "# يومًا", other: "# يوم" });

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "الرصيد",
    available: "المتاح",
    held: (amount) => `${amount} محجوزة لطلبات قيد التنفيذ`,
    nothingHeld: "لا شيء محجوز",
    allowance: (left, whole, day) => `المتبقي ${left} من ${whole}، يتجدد في ${day}`,
    tierHints: {
      free:
        `عدد الدردشات في الدقيقة: ${rates.free}. أضف ${limits.least_dollars} دولارات أو أكثر ` +
        `ليصبح ${rates.pro}.`,
      pro: `عدد الدردشات في الدقيقة: ${rates.pro}، مع الدعم`,
    },
    addFunds: "إضافة رصيد",
    testMoney: "وضع الاختبار: لا تُحصَّل أموال حقيقية.",
    spend: "الإنفاق",
    period: "الفترة",
    days: (n) => `آخر ${days(n)}`,
    by: "حسب",
    series: { model: "النموذج", key: "المفتاح" },
    session: "تطبيق الويب",
    deletedKey: "مفتاح محذوف",
    others: "أخرى",
    chartLabel: (n) => `الإنفاق اليومي خلال آخر ${days(n)}. استخدم مفتاحي السهم الأيسر والأيمن لاختيار يوم.`,
    most: (amount) => `أعلى يوم: ${amount}`,
    noSpend: "لا يوجد استخدام في هذه الفترة.",
    onlyFree: "استُخدمت النماذج المجانية فقط في هذه الفترة.",
    asTable: "عرض كجدول",
    day: "اليوم",
    requests: "الطلبات",
    input: "رموز الإدخال",
    output: "رموز الإخراج",
    cost: "التكلفة",
    ledger: "سجل الحساب",
    filter: "عرض",
    kinds: { all: "كل القيود", credit: "الإيداعات", debit: "الخصومات" },
    noneOfKind: "لا توجد قيود.",
    /** What an entry is for. */
    purposes: {
      funds: () => "إضافة رصيد",
      testFunds: () => "إضافة رصيد (أموال تجريبية)",
      allowance: (month) => `الحصة ${month}`,
      tokens: (model, input, output) =>
        `${model}: رموز الإدخال ${number(input)}، رموز الإخراج ${number(output)}`,
      cachedTokens: (model, input, cached, output) =>
        `${model}: رموز الإدخال ${number(input)} (${number(cached)} من الذاكرة المؤقتة)، ` +
        `رموز الإخراج ${number(output)}`,
      images: (model, n) => `${model}: عدد الصور ${number(n)}`,
      searches: (model, n) => `${model}: عدد عمليات البحث ${number(n)}`,
      speech: (model, n, seconds) => `${model}: الرموز الصوتية ${number(n)} (${seconds} ث)`,
    },
    searching: (n) => `ليس ضمن آخر القيود (${n}). البحث مستمر…`,
    csv: "تنزيل بتنسيق CSV",
    saving: (n) => `عدد القيود: ${n}…`,
    after: "ثم",
    noLedger: "لا توجد قيود بعد",
    noLedgerText: "تظهر إيداعاتك وتكاليفك هنا، بدقة جزء من مليون من الدولار.",
  },
  spending: {
    limit: "الحد الشهري",
    limitHint: "بالدولار الأمريكي لكل شهر تقويمي. اتركه فارغًا لعدم وضع حد.",
    spent: (spent, limit) => `أُنفق ${spent} من ${limit} هذا الشهر`,
    none: "يمكنك تحديد ما ينفقه حسابك أو مفتاح API واحد في الشهر.",
    change: "تغيير الحد",
    set: "تعيين حد",
    keys: "حدود مفاتيح API",
  },
};
