// English texts of views that are loaded when first shown.
import { count, number } from "../locale.js";

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
  more: (n) => `And ${number(n)} more.`,
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

export const temporaryTexts = {
  hint: "Nothing is stored or recalled. A reload forgets this chat.",
  files: "A temporary chat takes text files only, because it stores nothing.",
};

export const projectsTexts = {
  intro:
    "A project groups conversations, runs and artifacts, and adds its instructions to every chat " +
    "and agent run.",
  none: "No projects yet",
  noneText: "A project groups conversations, runs and artifacts, with shared instructions.",
  create: "New project",
  createAction: "Create project",
  name: "Name",
  instructions: "Instructions",
  instructionsHint: "Added to every conversation and agent run in this project.",
  noInstructions: "No instructions",
  cap: "Maximum steps of an agent run",
  capHint: "Runs in this project cannot use more steps.",
  noCap: "No limit",
  back: "All projects",
  newChat: "New chat",
  newRun: "New run",
  files: {
    title: "Files",
    none: "No files yet",
    noneText: "Drop documents here. Chats and runs of this project can search, read and cite them.",
    dropHere: "Drop files to add them to this project",
    add: "Add files",
    choose: "Add an artifact",
    addAction: "Add",
    addNamed: (name) => `Add ${name}`,
    added: "Added",
    remove: (name) => `Remove ${name}`,
    removed: (name) => `Removed “${name}”. The artifact stays.`,
    progress: (read, all) => `Reading: ${read} of ${count(all, "file", "files")} done`,
    sum: (n, size) => `${count(n, "file", "files")}, ${size} of text`,
    states: { reading: "Reading…", ready: "Ready" },
    failed: (reason) => `Not usable. ${reason}`,
    inChat: (n) => `${count(n, "file", "files")} of the project`,
    notReady: { reading: "still being read", failed: "not usable" },
    manage: "Files of the project",
  },
  conversations: "Conversations",
  runs: "Agent runs",
  nothingFiled: "Nothing here yet.",
  deleteTitle: "Delete this project?",
  deleteText: (name) =>
    `“${name}” and its instructions are deleted. Its conversations, runs and artifacts stay.`,
  deleted: (name) => `Deleted “${name}”`,
};

export const mediaTexts = {
  intro: "Create images and speech. They are saved as artifacts.",
  kinds: { picture: "Image", sound: "Speech" },
  prompt: "Describe the image",
  size: "Size",
  number: "Number of images",
  draw: "Generate",
  drawing: "Generating…",
  again: (prompt) => `Use again: ${prompt}`,
  gallery: "Gallery",
  sounds: "Audio",
  noPictures: "No images yet",
  noSounds: "No audio yet",
  text: "Text to speak",
  voice: "Voice",
  speed: "Speed",
  cap: "Maximum length",
  capChoice: (minutes, words) => `${minutes} min, about ${words} words`,
  speak: "Speak",
  speaking: "Speaking…",
  truncated: (minutes) => `The audio was cut after ${minutes}. Choose a longer maximum to hear everything.`,
  spoken: (length) => `${length} of speech`,
  keep: "Save as artifact",
  kept: "Saved",
  view: (name) => `View ${name}`,
  previous: "Previous image",
  next: "Next image",
};
