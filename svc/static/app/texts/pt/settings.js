import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  settings: {
    since: "Membro desde",
    unverified: "Seu e-mail não está verificado. Confira sua caixa de entrada ou reenvie o link.",
    noMail:
      "Seu e-mail não está verificado, e este serviço não pode enviar e-mails. Peça ao " +
      "operador um link para redefinir sua senha.",
    sendMail: "Reenviar link",
    chat: "Chat",
    defaultModel: "Modelo padrão",
    defaultModelHint: "Usado quando um chat ou uma solicitação não indica um modelo.",
    operatorsModel: "Padrão do serviço",
    memory: "Memória",
    sharesText: "Veja quais conversas você compartilha por link e desative links.",
    memoryText: "Veja o que os chats podem lembrar e faça com que esqueçam mensagens.",
    titles: "Títulos de novos chats",
    titlesHint:
      "O modelo do chat os escreve, pelo preço dele. Caso contrário, as primeiras palavras viram o título.",
    titleChoices: {
      free: "Por modelos gratuitos",
      always: "Por todos os modelos",
      never: "As primeiras palavras",
    },
    memoryHint: "Os chats podem usar trechos das suas conversas anteriores. A resposta mostra quais.",
    instructions: "Instruções personalizadas",
    saveInstructions: "Salvar instruções",
    instructionsHint:
      "Enviadas com cada chat: o que os modelos devem saber sobre você e como devem responder.",
    look: "Aparência",
    languageHint: "Para este app e para os e-mails.",
    verificationSent: "Um link de verificação foi enviado para o seu e-mail.",
    signIn: "Login",
    changeEmail: "Alterar e-mail",
    newEmail: "Novo e-mail",
    newEmailHint: "Enviaremos um link para este endereço. Abra-o para confirmar a alteração.",
    noMailToChange: "Este serviço não pode enviar e-mails. Peça ao operador para alterar seu endereço.",
    emailSent: (email) => `Enviamos um link para ${email}. Abra-o para confirmar a alteração.`,
    hasPassword: "Definida",
    noPassword: "Não definida. Você entra com um provedor de identidade.",
    changePassword: "Alterar senha",
    setPassword: "Definir senha",
    currentPassword: "Senha atual",
    newPassword: "Nova senha",
    passwordChanged: "Sua senha foi alterada.",
    identities: "Provedores de identidade",
    noIdentities: "Nenhum vinculado.",
    link: (provider) => `Vincular ${provider}`,
    unlink: "Desvincular",
    unlinkTitle: "Desvincular este método de login?",
    unlinkText: (provider) => `Você poderá vincular ${provider} novamente mais tarde.`,
    data: "Seus dados",
    exportText:
      "Baixe um arquivo com todos os seus dados: conversas, artefatos, execuções, projetos e extrato.",
    retention: {
      conversations_days: (n) => `Os chats são excluídos ${count(n, "dia", "dias")} após a última mensagem.`,
      runs_days: (n) => `As execuções de agentes são excluídas ${count(n, "dia", "dias")} após o término.`,
      files_days: (n) => `Os arquivos são excluídos ${count(n, "dia", "dias")} após a última alteração.`,
    },
    exportAction: "Exportar dados",
    tools: "Ferramentas",
    toolsText: "Conecte servidores MCP. Seus chats e agentes podem usar as ferramentas deles.",
    importText: "Importe chats do ChatGPT, Claude, Open WebUI, LibreChat ou de outro servidor como este.",
    exporting: (size) => `${size} até agora…`,
    end: "Excluir conta",
    endText: "Exclua permanentemente suas conversas, artefatos, chaves e provedores.",
    endAction: "Excluir conta",
    endTitle: "Excluir sua conta?",
    endWhat:
      "Suas chaves param de funcionar, os agentes em execução param, e suas conversas, " +
      "artefatos, projetos e provedores são excluídos. O saldo é perdido. Os lançamentos do " +
      "extrato permanecem sem o seu nome. Esta ação não pode ser desfeita.",
    endConfirm: (email) => `Digite ${email} para confirmar`,
    endDiffers: "Este não é o e-mail desta conta.",
  },
};
