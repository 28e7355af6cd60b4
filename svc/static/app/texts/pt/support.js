import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "Escreva para o operador deste serviço. Você pode ter uma conversa aberta.",
    pro: "O suporte faz parte do Pro",
    proText: `Adicione US$ ${limits.least_dollars} ou mais ao seu saldo para ter o Pro.`,
    oneActive: "Você tem uma conversa aberta.",
    open: "Abrir",
    earlier: "Conversas",
    none: "Nenhuma conversa ainda.",
    untitled: "Sem assunto",
    statuses: { active: "Aberta", closed: "Encerrada" },
    subject: "Assunto (opcional)",
    message: "Mensagem",
    messages: "Mensagens",
    send: "Enviar",
    back: "Todas as conversas",
    roles: { user: "Você", operator: "Operador" },
    close: "Encerrar conversa",
    closeTitle: "Encerrar esta conversa?",
    closeText: "Você ainda poderá lê-la e começar uma nova.",
    closed: "Esta conversa foi encerrada.",
  },
};
