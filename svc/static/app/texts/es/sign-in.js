import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  signIn: {
    ...first.signIn,
    lead: "Tu propia plataforma de IA, en tu propio equipo.",
    about:
      "Chat, agentes, imágenes y audio con cualquier servidor de modelos, en una sola " +
      "cuenta. Siempre ves cuánto cuesta " +
      "cada cosa, y la API es compatible con OpenAI.",
    points: [
      ["chat", "Chatea con todos tus modelos y conserva tus conversaciones."],
      ["agents", "Da un objetivo a un agente y sigue cada paso."],
      ["key", "Usa la misma cuenta desde curl, Python o JavaScript."],
    ],
    signUp: "Crea tu cuenta",
    toSignIn: "¿Ya tienes una cuenta? Inicia sesión",
    toSignUp: "Crear una cuenta",
    signUpAction: "Crear cuenta",
    show: "Mostrar contraseña",
    hide: "Ocultar contraseña",
    forgot: "¿Olvidaste tu contraseña?",
    forgotTitle: "Restablece tu contraseña",
    forgotText: "Te enviaremos un enlace por correo. Será válido durante una hora.",
    forgotAction: "Enviar enlace",
    forgotDone:
      "Si existe una cuenta con este correo electrónico, hemos enviado un enlace. ¿No te ha " +
      "llegado? Pide un enlace al " +
      "operador de este servicio.",
    forgotNoMail: "Este servicio no envía correos. Pide un enlace al operador.",
    back: "Volver al inicio de sesión",
    closed: "El registro está cerrado. Pide una cuenta al operador.",
    again: "Tu sesión ha caducado",
    againText: (email) =>
      `Las sesiones duran ${limits.session_hours} horas. Introduce la contraseña de ${email} ` +
      "para continuar. " +
      "Tu trabajo está guardado.",
    againAction: "Continuar",
    otherAccount: "Usar otra cuenta",
    linked: "Vinculado. Ahora también puedes iniciar sesión así.",
    trouble: {
      access_denied: "El inicio de sesión se canceló o el proveedor lo rechazó.",
      domain_not_allowed:
        "El registro está cerrado para el dominio de tu correo electrónico. Pide una cuenta al operador.",
      email_missing: "El proveedor no compartió tu correo electrónico. Una cuenta necesita uno.",
      email_not_verified:
        "El proveedor no indica que tu correo electrónico esté verificado. Avisa al operador, " +
        "o inicia sesión como antes y vincula este método en tu configuración.",
      email_taken:
        "Ya existe una cuenta con este correo electrónico. Inicia sesión como antes o " +
        "restablece tu contraseña. " +
        "Después, vincula este método en tu configuración.",
      identity_taken: "Esta identidad está vinculada a otra cuenta.",
      invalid_token: "Este inicio de sesión caducó o empezó en otro navegador. Inténtalo de nuevo.",
      shutting_down: "El servicio se está reiniciando. Inténtalo de nuevo en un momento.",
      signup_closed: "El registro está cerrado y no tienes cuenta. Pide una al operador.",
      storage_unavailable: "El servicio no puede guardar datos en este momento. Inténtalo más tarde.",
      other: "No se pudo contactar con el proveedor. Inténtalo de nuevo en un momento.",
    },
  },
};
