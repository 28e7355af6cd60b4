import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  providers: {
    ...first.providers,
    intro: "Conecta tus propios servidores de modelos con tus propias claves API. Usarlos aquí es gratis.",
    none: "Aún no hay proveedores",
    noneText: "Conecta cualquier servidor compatible con OpenAI: de una empresa o de tu propio ordenador.",
    notAllowed: "El operador de este servicio no permite servidores propios de modelos ni de herramientas.",
    add: "Añadir proveedor",
    addAction: "Añadir",
    connectTitle: (program) => `Conectar ${program}`,
    connectSteps: {
      ollama: [
        "Instala Ollama (ollama.com) en el ordenador donde se ejecuta este servicio.",
        "Descarga un modelo. En un terminal, ejecuta:",
        "Sus modelos aparecerán en el selector de modelos. Puede tardar un minuto.",
      ],
      lmstudio: [
        "Instala LM Studio (lmstudio.ai) en el ordenador donde se ejecuta este servicio y " +
          "descarga un modelo.",
        "Inicia su servidor. En un terminal, ejecuta:",
        "Sus modelos aparecerán en el selector de modelos. Puede tardar un minuto.",
      ],
    },
    elsewhere: "Se ejecuta en otro ordenador",
    checkAgain: "Comprobar de nuevo",
    notFound: (program) => `No se encontraron modelos de ${program}.`,
    found: (program, n) => `Conectado a ${program}: ${count(n, "modelo encontrado", "modelos encontrados")}.`,
    added: (name) => `Se añadió ${name}`,
    name: "Nombre",
    nameHint: "Minúsculas, cifras, - y _. Los modelos se llaman nombre/modelo.",
    baseUrl: "URL base",
    baseUrlHint: "La dirección de la API, que suele terminar en /v1.",
    format: "Formato",
    formatHint: "La prueba de un proveedor muestra qué formatos responde.",
    formats: { chat: "Chat Completions", responses: "Responses", messages: "Messages" },
    answers: (formats) => `Responde a ${formats.join(", ")}.`,
    apiKey: "Clave API",
    apiKeyHint:
      "Déjala vacía si el servidor no la necesita. La clave se guarda cifrada y no se vuelve a mostrar.",
    keyStays: (hint) => `Déjala vacía para conservar la clave guardada (${hint}).`,
    keyDropped: "La URL ha cambiado. Sin una clave nueva, se eliminará la guardada.",
    keyEnding: (hint) => `clave ${hint}`,
    withKey: "con clave",
    noKey: "sin clave",
    withoutKey: "Quitar la clave guardada",
    models: "Modelos",
    modelsHint:
      "Un modelo por línea. Déjalo vacío para usar todos. " +
      "Añade “image”, “speech” o “transcription” después de un modelo de ese tipo.",
    allModels: "todos los modelos",
    narrowed: (n) => count(n, "modelo", "modelos"),
    test: "Probar",
    works: (n) => `Conectado: ${count(n, "modelo encontrado", "modelos encontrados")}.`,
    worksEmpty: "Conectado, pero el servidor no ofrece ningún modelo.",
    andMore: (n) => ` y ${n} más`,
    actions: (name) => `Acciones de ${name}`,
    edit: "Editar",
    editTitle: (name) => `Editar ${name}`,
    deleteTitle: "¿Eliminar este proveedor?",
    deleteText: (name) =>
      `Se eliminarán los modelos de “${name}” y su clave guardada. Esta acción no se puede deshacer.`,
    deleted: (name) => `Se eliminó ${name}`,
  },
};
