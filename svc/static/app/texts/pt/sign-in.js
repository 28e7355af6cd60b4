import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  signIn: {
    ...first.signIn,
    lead: "Sua própria plataforma de IA, na sua própria máquina.",
    about:
      "Chat, agentes, imagens e áudio com qualquer servidor de modelos, em uma só conta. " +
      "Você vê o custo de tudo, e a API é compatível com OpenAI.",
    points: [
      ["chat", "Converse com todos os seus modelos e guarde suas conversas."],
      ["agents", "Dê um objetivo a um agente e acompanhe cada etapa."],
      ["key", "Use a mesma conta com curl, Python ou JavaScript."],
    ],
    signUp: "Crie sua conta",
    toSignIn: "Já tem uma conta? Entrar",
    toSignUp: "Criar uma conta",
    signUpAction: "Criar conta",
    show: "Mostrar senha",
    hide: "Ocultar senha",
    forgot: "Esqueceu a senha?",
    forgotTitle: "Redefinir sua senha",
    forgotText: "Enviaremos um link por e-mail. Ele vale por uma hora.",
    forgotAction: "Enviar link",
    forgotDone:
      "Se existir uma conta com este e-mail, enviamos um link. Não recebeu? Peça um link ao " +
      "operador deste serviço.",
    forgotNoMail: "Este serviço não envia e-mails. Peça um link ao operador.",
    back: "Voltar para o login",
    closed: "Os cadastros estão fechados. Peça uma conta ao operador.",
    again: "Sua sessão expirou",
    againText: (email) =>
      `As sessões duram ${limits.session_hours} horas. Digite a senha de ${email} para ` +
      "continuar. Seu trabalho está salvo.",
    againAction: "Continuar",
    otherAccount: "Usar outra conta",
    linked: "Vinculado. Agora você também pode entrar assim.",
    trouble: {
      access_denied: "O login foi cancelado ou recusado pelo provedor.",
      domain_not_allowed:
        "Os cadastros estão fechados para o domínio do seu e-mail. Peça uma conta ao operador.",
      email_missing: "O provedor não compartilhou seu e-mail. Uma conta precisa de um.",
      email_not_verified:
        "O provedor não informa que seu e-mail está verificado. Avise o operador, ou entre " +
        "como antes e vincule este método de login nas suas configurações.",
      email_taken:
        "Já existe uma conta com este e-mail. Entre como antes ou redefina sua senha. " +
        "Depois, vincule este método de login nas suas configurações.",
      identity_taken: "Esta identidade está vinculada a outra conta.",
      invalid_token: "Este login expirou ou começou em outro navegador. Tente novamente.",
      shutting_down: "O serviço está reiniciando. Tente novamente em instantes.",
      signup_closed: "Os cadastros estão fechados e você não tem conta. Peça uma ao operador.",
      storage_unavailable: "O serviço não pode salvar dados agora. Tente novamente mais tarde.",
      other: "Não foi possível contatar o provedor. Tente novamente em instantes.",
    },
  },
};
