// Spanish texts of views that are loaded when first shown.
import { count, number } from "../locale.js";

export const importTexts = {
  intro:
    "Importa chats de ChatGPT, Claude, Open WebUI, LibreChat o de una exportación de este servicio. " +
    "Elige el archivo ZIP o JSON de la exportación, de 200 MB como máximo.",
  action: "Elegir un archivo",
  sending: (size) => `Subiendo, ${size} hasta ahora…`,
  reading: (n) => `Importando, ${count(n, "conversación", "conversaciones")} hasta ahora…`,
  done: (source) => `La importación desde ${source} ha terminado.`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "este servicio",
  },
  counts: ({ imported, skipped, failed }) =>
    `${count(imported, "conversación importada", "conversaciones importadas")}, ${skipped} ` +
    `omitidas, ${failed} con errores.`,
  details: "Mostrar cada conversación",
  statuses: { imported: "Importada", skipped: "Omitida", failed: "Con errores" },
  more: (n) => `Y ${number(n)} más.`,
  undo: "Deshacer importación",
  undoTitle: "¿Deshacer esta importación?",
  undoText:
    "Se eliminará todo lo importado, también lo que hayas escrito desde entonces en estas conversaciones. " +
    "Puedes volver a importar el archivo.",
  undone: "La importación se ha deshecho.",
};

export const memoryTexts = {
  intro: "Los chats pueden recordar estos mensajes. Un mensaje olvidado permanece en su conversación.",
  search: "Ver qué recordarían los chats con una pregunta",
  find: "Buscar",
  forgotten: "Mostrar mensajes olvidados",
  none: "No se recuerda nada.",
  noneForgotten: "No hay mensajes olvidados.",
  forget: "Olvidar",
  remember: "Volver a recordar",
  done: "Los chats ya no recuerdan este mensaje.",
  roles: { user: "Tú", assistant: "Asistente", system: "Sistema" },
};

export const temporaryTexts = {
  hint: "No se guarda ni se recuerda nada. Al recargar la página, este chat se pierde.",
  files: "Un chat temporal solo acepta archivos de texto, porque no guarda nada.",
};

export const projectsTexts = {
  intro:
    "Un proyecto agrupa conversaciones, ejecuciones y artefactos, y añade sus instrucciones a cada chat " +
    "y a cada ejecución de agente.",
  none: "Aún no hay proyectos",
  noneText: "Un proyecto agrupa conversaciones, ejecuciones y artefactos con instrucciones comunes.",
  create: "Nuevo proyecto",
  createAction: "Crear proyecto",
  name: "Nombre",
  instructions: "Instrucciones",
  instructionsHint: "Se añaden a cada conversación y a cada ejecución de agente de este proyecto.",
  noInstructions: "Sin instrucciones",
  cap: "Máximo de pasos de una ejecución de agente",
  capHint: "Las ejecuciones de este proyecto no pueden usar más pasos.",
  noCap: "Sin límite",
  back: "Todos los proyectos",
  newChat: "Nuevo chat",
  newRun: "Nueva ejecución",
  files: {
    title: "Archivos",
    none: "Aún no hay archivos",
    noneText:
      "Suelta documentos aquí. Los chats y las ejecuciones de este proyecto pueden " +
      "buscar en ellos, leerlos y citarlos.",
    dropHere: "Suelta los archivos para añadirlos a este proyecto",
    add: "Añadir archivos",
    choose: "Añadir un artefacto",
    addAction: "Añadir",
    addNamed: (name) => `Añadir ${name}`,
    added: "Añadido",
    remove: (name) => `Quitar ${name}`,
    removed: (name) => `Se quitó “${name}”. El artefacto se conserva.`,
    progress: (read, all) => `Leyendo: ${read} de ${count(all, "archivo", "archivos")}`,
    sum: (n, size) => `${count(n, "archivo", "archivos")}, ${size} de texto`,
    states: { reading: "Leyendo…", ready: "Listo" },
    failed: (reason) => `No se puede usar. ${reason}`,
    inChat: (n) => `${count(n, "archivo", "archivos")} del proyecto`,
    notReady: { reading: "aún se está leyendo", failed: "no se puede usar" },
    manage: "Archivos del proyecto",
  },
  conversations: "Conversaciones",
  runs: "Ejecuciones de agentes",
  nothingFiled: "Aún no hay nada aquí.",
  deleteTitle: "¿Eliminar este proyecto?",
  deleteText: (name) =>
    `Se eliminarán “${name}” y sus instrucciones. Sus conversaciones, ejecuciones y artefactos se conservan.`,
  deleted: (name) => `Se eliminó “${name}”`,
};

export const mediaTexts = {
  intro: "Crea imágenes y voz. Se guardan como artefactos.",
  kinds: { picture: "Imagen", sound: "Voz" },
  prompt: "Describe la imagen",
  size: "Tamaño",
  number: "Número de imágenes",
  draw: "Generar",
  drawing: "Generando…",
  again: (prompt) => `Usar de nuevo: ${prompt}`,
  gallery: "Galería",
  sounds: "Audio",
  noPictures: "Aún no hay imágenes",
  noSounds: "Aún no hay audio",
  text: "Texto que se leerá",
  voice: "Voz",
  speed: "Velocidad",
  cap: "Duración máxima",
  capChoice: (minutes, words) => `${minutes} min, unas ${words} palabras`,
  speak: "Generar voz",
  speaking: "Generando voz…",
  truncated: (minutes) =>
    `El audio se cortó a los ${minutes}. Elige una duración máxima mayor para oírlo todo.`,
  spoken: (length) => `${length} de voz`,
  keep: "Guardar como artefacto",
  kept: "Guardado",
  view: (name) => `Ver ${name}`,
  previous: "Imagen anterior",
  next: "Imagen siguiente",
};
