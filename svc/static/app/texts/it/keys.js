import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "Per Codex, Claude Code, script e qualsiasi strumento compatibile con OpenAI o " +
      "Anthropic. Una chiave ha lo stesso accesso che hai tu ed è valida finché non la " +
      "elimini.",
    none: "Ancora nessuna chiave",
    noneText: "Crea una chiave per ogni programma, così puoi eliminarle separatamente.",
    create: "Nuova chiave",
    createAction: "Crea chiave",
    name: "Nome",
    nameHint: "Per esempio “il mio portatile” o “report notturno”.",
    made: "creata",
    used: "ultimo uso",
    neverUsed: "mai usata",
    spent: "speso",
    edit: "Modifica chiave",
    editNamed: (name) => `Modifica la chiave ${name}`,
    deleteNamed: (name) => `Elimina la chiave ${name}`,
    deleteTitle: "Eliminare questa chiave?",
    deleteText: (name) =>
      `I programmi che usano “${name}” smettono subito di funzionare. L’operazione non può essere annullata.`,
    deleted: (name) => `Chiave “${name}” eliminata`,
    madeTitle: "La tua nuova chiave",
    once: "Copiala ora. Non potrai più vederla.",
    copyKey: "Copia chiave",
    kept: "Fatto",
    use: "Usa una chiave",
    useHint: "Sostituisci YOUR_KEY con una delle tue chiavi.",
    examples: "Impostazioni per i programmi",
    terminal: "Terminale",
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
      "Questo servizio usa un proprio certificato. Su un altro computer, copia prima lì il " +
      "file del certificato e cambia il percorso nell’esempio.",
  },
};
