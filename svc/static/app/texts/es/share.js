// Spanish texts of shared conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const share = {
  dialog: "Compartir conversación",
  about:
    "Cualquier persona con el enlace puede leer una copia de la conversación tal como está ahora. " +
    "Los mensajes posteriores no se añaden.",
  has:
    "La copia incluye el título, las preguntas con el texto de los archivos adjuntos " +
    "y las respuestas con sus imágenes.",
  hasNot:
    "No incluye tu nombre, tus instrucciones, los fragmentos recordados, el razonamiento, lo " +
    "que hicieron las herramientas " +
    "ni las imágenes que adjuntaste.",
  ends: "El enlace funciona durante",
  days: (n) => (n ? count(n, "día", "días") : "Sin límite de tiempo"),
  create: "Crear enlace",
  link: "Enlace",
  copy: "Copiar enlace",
  once: "Copia el enlace ahora. No se volverá a mostrar.",
  list: "Gestionar enlaces compartidos",
  intro:
    "Cada enlace muestra una copia de una conversación a quien lo tenga. " +
    "Los enlaces no se guardan, por lo que no se pueden volver a mostrar.",
  none: "No has compartido ninguna conversación.",
  sharedOn: (day) => `Compartida el ${day}`,
  endsOn: (day) => `termina el ${day}`,
  endless: "sin límite de tiempo",
  end: "Desactivar enlace",
  endTitle: "¿Desactivar este enlace?",
  endText: "Dejará de funcionar para todos y la copia se eliminará. Tu conversación se conserva.",
  ended: "El enlace ya no funciona.",
  untitled: "Sin título",
  readOnly: (day) => `Una copia del ${day}. No se puede modificar.`,
  gone:
    "Esta conversación no está compartida. Es posible que el enlace haya caducado o que se " +
    "haya desactivado.",
  goOn: "Continuar en mi cuenta",
  signIn: "Inicia sesión para continuar",
  you: "Pregunta",
  assistant: "Respuesta",
  picture: "Imagen de la respuesta",
  cut: "Esta respuesta no está completa.",
};

export const texts = { ...first, share };
