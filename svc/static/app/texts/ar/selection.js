// Arabic texts of the selection of conversations.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "تحديد محادثات",
    all: "تحديد الكل",
    selected: (n) => `عدد المحادثات المحددة: ${number(n)}`,
    most: (n) => `أقصى عدد للتحديد دفعة واحدة: ${n}.`,
    done: "تم",
  },
};
