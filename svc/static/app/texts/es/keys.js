import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "Para Codex, Claude Code, scripts y cualquier programa compatible con OpenAI o " +
      "Anthropic. Una clave tiene el " +
      "mismo acceso que tú y es válida hasta que la elimines.",
    none: "Aún no hay claves",
    noneText: "Crea una clave distinta para cada programa, así podrás eliminarlas por separado.",
    create: "Nueva clave",
    createAction: "Crear clave",
    name: "Nombre",
    nameHint: "Por ejemplo, “mi portátil” o “informe nocturno”.",
    made: "creada",
    used: "último uso",
    neverUsed: "nunca usada",
    spent: "gastado",
    edit: "Editar clave",
    editNamed: (name) => `Editar la clave ${name}`,
    deleteNamed: (name) => `Eliminar la clave ${name}`,
    deleteTitle: "¿Eliminar esta clave?",
    deleteText: (name) =>
      `Los programas que usan “${name}” dejarán de funcionar de inmediato. Esta acción no se puede deshacer.`,
    deleted: (name) => `Se eliminó la clave “${name}”`,
    madeTitle: "Tu nueva clave",
    once: "Cópiala ahora. No podrás volver a verla.",
    copyKey: "Copiar clave",
    kept: "Listo",
    use: "Usar una clave",
    useHint: "Reemplaza YOUR_KEY por una de tus claves.",
    examples: "Configuración para programas",
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
      "Este servicio usa su propio certificado. En otro ordenador, copia allí primero el " +
      "archivo del certificado " +
      "y cambia su ruta en el ejemplo.",
  },
};
