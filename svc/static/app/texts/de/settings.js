import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  settings: {
    since: "Mitglied seit",
    unverified:
      "Deine E-Mail-Adresse ist nicht bestätigt. Sieh in dein Postfach oder sende den Link noch einmal.",
    noMail:
      "Deine E-Mail-Adresse ist nicht bestätigt, und dieser Dienst kann keine E-Mails " +
      "senden. Bitte den Betreiber um " +
      "einen Link, mit dem du dein Passwort zurücksetzen kannst.",
    sendMail: "Link erneut senden",
    chat: "Chat",
    defaultModel: "Standardmodell",
    defaultModelHint: "Wird verwendet, wenn ein Chat oder eine Anfrage kein Modell nennt.",
    operatorsModel: "Standard des Dienstes",
    memory: "Erinnerungen",
    memoryText: "Sieh dir an, woran sich Chats erinnern, und lass sie einzelne Nachrichten vergessen.",
    titles: "Titel neuer Chats",
    titlesHint:
      "Das Modell des Chats schreibt sie, zu seinem Preis. Sonst werden die ersten Wörter zum Titel.",
    titleChoices: {
      free: "Von kostenlosen Modellen",
      always: "Von allen Modellen",
      never: "Die ersten Wörter",
    },
    memoryHint:
      "Chats können Stellen aus deinen früheren Unterhaltungen verwenden. Die Antwort zeigt, welche.",
    instructions: "Individuelle Anweisungen",
    saveInstructions: "Anweisungen speichern",
    instructionsHint:
      "Werden mit jedem Chat gesendet: was die Modelle über dich wissen und wie sie antworten sollen.",
    look: "Darstellung",
    languageHint: "Für diese App und für E-Mails.",
    verificationSent: "Ein Bestätigungslink ist unterwegs an deine E-Mail-Adresse.",
    signIn: "Anmeldung",
    changeEmail: "Adresse ändern",
    newEmail: "Neue E-Mail-Adresse",
    newEmailHint: "Wir senden einen Link an diese Adresse. Öffne ihn, um die Änderung zu bestätigen.",
    noMailToChange: "Dieser Dienst kann keine E-Mails senden. Bitte den Betreiber, deine Adresse zu ändern.",
    emailSent: (email) =>
      `Wir haben einen Link an ${email} gesendet. Öffne ihn, um die Änderung zu bestätigen.`,
    hasPassword: "Festgelegt",
    noPassword: "Nicht festgelegt. Du meldest dich über einen Identitätsanbieter an.",
    changePassword: "Passwort ändern",
    setPassword: "Passwort festlegen",
    currentPassword: "Aktuelles Passwort",
    newPassword: "Neues Passwort",
    passwordChanged: "Dein Passwort wurde geändert.",
    identities: "Identitätsanbieter",
    noIdentities: "Keiner verknüpft.",
    link: (provider) => `${provider} verknüpfen`,
    unlink: "Verknüpfung aufheben",
    unlinkTitle: "Diese Anmeldemethode trennen?",
    unlinkText: (provider) => `Du kannst ${provider} später wieder verknüpfen.`,
    data: "Deine Daten",
    exportText:
      "Lade ein Archiv mit all deinen Daten herunter: Unterhaltungen, Artefakte, Läufe, " +
      "Projekte und Buchungen.",
    retention: {
      conversations_days: (n) =>
        `Chats werden ${count(n, "Tag", "Tage")} nach der letzten Nachricht gelöscht.`,
      runs_days: (n) => `Agentenläufe werden ${count(n, "Tag", "Tage")} nach ihrem Ende gelöscht.`,
      files_days: (n) => `Dateien werden ${count(n, "Tag", "Tage")} nach der letzten Änderung gelöscht.`,
    },
    exportAction: "Daten exportieren",
    tools: "Tools",
    toolsText: "Verbinde MCP-Server. Deine Chats und Agenten können ihre Tools verwenden.",
    sharesText: "Sieh nach, welche Unterhaltungen du per Link teilst, und beende Links.",
    importText:
      "Importiere Chats aus ChatGPT, Claude, Open WebUI, LibreChat oder von einem anderen Server wie diesem.",
    exporting: (size) => `Bisher ${size} …`,
    end: "Konto löschen",
    endText: "Lösche deine Unterhaltungen, Artefakte, Schlüssel und Anbieter endgültig.",
    endAction: "Konto löschen",
  },
};
