import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "For Codex, Claude Code, scripts and every OpenAI- or Anthropic-compatible tool. A key has the " +
      "same access as you, and is valid until you delete it.",
    none: "No keys yet",
    noneText: "Create a separate key for each program, so that you can delete it separately.",
    create: "New key",
    createAction: "Create key",
    name: "Name",
    nameHint: "For example “my laptop” or “nightly report”.",
    made: "created",
    used: "last used",
    neverUsed: "never used",
    spent: "spent",
    edit: "Edit key",
    editNamed: (name) => `Edit key ${name}`,
    deleteNamed: (name) => `Delete key ${name}`,
    deleteTitle: "Delete this key?",
    deleteText: (name) => `Programs that use “${name}” stop working immediately. This cannot be undone.`,
    deleted: (name) => `Deleted key “${name}”`,
    madeTitle: "Your new key",
    once: "Copy it now. You will not be able to see it again.",
    copyKey: "Copy key",
    kept: "Done",
    use: "Use a key",
    useHint: "Replace YOUR_KEY with one of your keys.",
    examples: "Settings for programs",
    terminal: "Terminal",
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
      "This service uses its own certificate. On another computer, copy the certificate file " +
      "there first, and change its path in the example.",
  },
};
