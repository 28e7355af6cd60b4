// Portuguese texts of shared conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const share = {
  dialog: "Compartilhar conversa",
  about:
    "Qualquer pessoa com o link pode ler uma cópia da conversa como ela está agora. " +
    "Mensagens posteriores não são incluídas.",
  has: "A cópia tem o título, as perguntas com o texto dos arquivos anexados e as respostas com as imagens.",
  hasNot:
    "Ela não tem seu nome, suas instruções, trechos lembrados, raciocínio, o que as " +
    "ferramentas fizeram nem imagens que você anexou.",
  ends: "O link funciona por",
  days: (n) => (n ? count(n, "dia", "dias") : "Sem limite de tempo"),
  create: "Criar link",
  link: "Link",
  copy: "Copiar link",
  once: "Copie o link agora. Ele não será exibido novamente.",
  list: "Gerenciar links compartilhados",
  intro:
    "Cada link mostra uma cópia de uma conversa a quem o tiver. Os links em si não são " +
    "armazenados, por isso não podem ser exibidos novamente.",
  none: "Você não compartilhou nenhuma conversa.",
  sharedOn: (day) => `Compartilhada em ${day}`,
  endsOn: (day) => `termina em ${day}`,
  endless: "sem limite de tempo",
  end: "Desativar link",
  endTitle: "Desativar este link?",
  endText: "Ele não abrirá mais para ninguém, e a cópia será excluída. Sua conversa permanece.",
  ended: "O link não funciona mais.",
  untitled: "Sem título",
  readOnly: (day) => `Uma cópia de ${day}. Ela não pode ser alterada.`,
  gone: "Esta conversa não está compartilhada. O link pode ter expirado ou ter sido desativado.",
  goOn: "Continuar na minha conta",
  signIn: "Entrar para continuar",
  you: "Pergunta",
  assistant: "Resposta",
  picture: "Imagem da resposta",
  cut: "Esta resposta não está completa.",
};

export const texts = { ...first, share };
