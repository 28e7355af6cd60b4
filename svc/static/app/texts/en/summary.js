// English texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "Start of what the model reads",
    begins: "The model reads this chat from here on. Earlier messages are too much for it.",
    summarized: "The model reads this chat from here on, and a summary of the earlier messages.",
    summarize: "Summarize earlier messages",
    again: "Summarize again",
    cost: (amount) => `Costs about ${amount}`,
    summary: "Summary",
    edit: "Edit summary",
    remove: "Remove summary",
    save: "Save",
    cancel: "Cancel",
  },
};
