import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  settings: {
    since: "Miembro desde",
    unverified:
      "Tu correo electrónico no está verificado. Revisa tu bandeja de entrada o vuelve a enviar el enlace.",
    noMail:
      "Tu correo electrónico no está verificado y este servicio no puede enviar correos. " +
      "Pide al operador un enlace " +
      "para restablecer tu contraseña.",
    sendMail: "Reenviar enlace",
    chat: "Chat",
    defaultModel: "Modelo predeterminado",
    defaultModelHint: "Se usa cuando un chat o una solicitud no indica ningún modelo.",
    operatorsModel: "Predeterminado del servicio",
    memory: "Memoria",
    memoryText: "Mira lo que los chats pueden recordar y haz que olviden mensajes.",
    titles: "Títulos de los chats nuevos",
    titlesHint:
      "Los escribe el modelo del chat, a su precio. En otro caso, el título son las primeras palabras.",
    titleChoices: {
      free: "Con modelos gratuitos",
      always: "Con todos los modelos",
      never: "Las primeras palabras",
    },
    memoryHint:
      "Los chats pueden usar fragmentos de tus conversaciones anteriores. La respuesta muestra cuáles.",
    instructions: "Instrucciones personalizadas",
    saveInstructions: "Guardar instrucciones",
    instructionsHint:
      "Se envían con cada chat: lo que los modelos deben saber sobre ti y cómo deben responder.",
    look: "Apariencia",
    languageHint: "Para esta aplicación y para los correos.",
    verificationSent: "Hemos enviado un enlace de verificación a tu correo electrónico.",
    signIn: "Inicio de sesión",
    changeEmail: "Cambiar correo",
    newEmail: "Nuevo correo electrónico",
    newEmailHint: "Enviaremos un enlace a esta dirección. Ábrelo para confirmar el cambio.",
    noMailToChange: "Este servicio no puede enviar correos. Pide al operador que cambie tu dirección.",
    emailSent: (email) => `Hemos enviado un enlace a ${email}. Ábrelo para confirmar el cambio.`,
    hasPassword: "Definida",
    noPassword: "Sin definir. Inicias sesión con un proveedor de identidad.",
    changePassword: "Cambiar contraseña",
    setPassword: "Definir contraseña",
    currentPassword: "Contraseña actual",
    newPassword: "Nueva contraseña",
    passwordChanged: "Tu contraseña se ha cambiado.",
    identities: "Proveedores de identidad",
    noIdentities: "Ninguno vinculado.",
    link: (provider) => `Vincular ${provider}`,
    unlink: "Desvincular",
    unlinkTitle: "¿Desvincular este método de inicio de sesión?",
    unlinkText: (provider) => `Podrás volver a vincular ${provider} más adelante.`,
    data: "Tus datos",
    exportText:
      "Descarga un archivo con todos tus datos: conversaciones, artefactos, ejecuciones, " +
      "proyectos y movimientos.",
    retention: {
      conversations_days: (n) =>
        `Los chats se eliminan ${count(n, "día", "días")} después de su último mensaje.`,
      runs_days: (n) =>
        `Las ejecuciones de agentes se eliminan ${count(n, "día", "días")} después de terminar.`,
      files_days: (n) => `Los archivos se eliminan ${count(n, "día", "días")} después de su último cambio.`,
    },
    exportAction: "Exportar datos",
    tools: "Herramientas",
    toolsText: "Conecta servidores MCP. Tus chats y agentes pueden usar sus herramientas.",
    sharesText: "Mira qué conversaciones compartes con un enlace y desactiva enlaces.",
    importText: "Importa chats de ChatGPT, Claude, Open WebUI, LibreChat o de otro servidor como este.",
    exporting: (size) => `${size} hasta ahora…`,
    end: "Eliminar cuenta",
    endText: "Elimina de forma permanente tus conversaciones, artefactos, claves y proveedores.",
    endAction: "Eliminar cuenta",
  },
};
