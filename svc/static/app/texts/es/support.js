import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "Escribe al operador de este servicio. Puedes tener una conversación abierta.",
    pro: "El soporte forma parte de Pro",
    proText: `Añade al menos ${limits.least_dollars} US$ a tu saldo para obtener Pro.`,
    oneActive: "Tienes una conversación abierta.",
    open: "Abrirla",
    earlier: "Conversaciones",
    none: "Aún no hay conversaciones.",
    untitled: "Sin asunto",
    statuses: { active: "Abierta", closed: "Cerrada" },
    subject: "Asunto (opcional)",
    message: "Mensaje",
    messages: "Mensajes",
    send: "Enviar",
    back: "Todas las conversaciones",
    roles: { user: "Tú", operator: "Operador" },
    close: "Cerrar conversación",
    closeTitle: "¿Cerrar esta conversación?",
    closeText: "Podrás seguir leyéndola y empezar una nueva.",
    closed: "Esta conversación está cerrada.",
  },
};
