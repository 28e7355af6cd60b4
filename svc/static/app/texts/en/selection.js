// English texts of the selection of conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "Select conversations",
    all: "Select all",
    selected: (n) => `${count(n, "conversation", "conversations")} selected`,
    most: (n) => `You can select ${n} at once.`,
    done: "Done",
  },
};
