// Arabic texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["دردشة جديدة", "N", "Ctrl+Shift+O"],
  ["البحث في المحادثات", "/", "Ctrl+K"],
  ["اختيار نموذج", "M"],
  ["الانتقال إلى مربع الرسالة", "Shift+Esc"],
  ["إرسال الرسالة", "Enter"],
  ["سطر جديد", "Shift+Enter"],
  ["إدراج موجّه محفوظ", "/"],
  ["إيقاف التوليد", "Esc"],
  ["نسخ آخر إجابة", "Ctrl+Shift+C"],
  ["تعديل آخر رسالة", "↑"],
  ["عرض الاختصارات", "?"],
];
