// English texts of views that are loaded when first shown.
const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export const importTexts = {
  intro:
    "Import chats from ChatGPT, Claude, Open WebUI, LibreChat or an export of this service. " +
    "Choose the ZIP or JSON file of the export, at most 200 MB.",
  action: "Choose a file",
  sending: (size) => `Uploading, ${size} so far…`,
  reading: (n) => `Importing, ${count(n, "conversation", "conversations")} so far…`,
  done: (source) => `The import from ${source} is complete.`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "this service",
  },
  counts: ({ imported, skipped, failed }) =>
    `${count(imported, "conversation", "conversations")} imported, ${skipped} skipped, ${failed} failed.`,
  details: "Show each conversation",
  statuses: { imported: "Imported", skipped: "Skipped", failed: "Failed" },
  more: (n) => `And ${n.toLocaleString("en")} more.`,
  undo: "Undo import",
  undoTitle: "Undo this import?",
  undoText:
    "Everything that it imported is deleted, also what you wrote in these conversations since. " +
    "You can import the file again.",
  undone: "The import was undone.",
};

export const memoryTexts = {
  intro: "Chats can recall these messages. A forgotten message stays in its conversation.",
  search: "Show what a question recalls",
  find: "Search",
  forgotten: "Show forgotten messages",
  none: "Nothing is recalled.",
  noneForgotten: "No message is forgotten.",
  forget: "Forget",
  remember: "Remember",
  done: "Chats no longer recall this message.",
  roles: { user: "You", assistant: "Assistant", system: "System" },
};
