import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  signIn: {
    ...first.signIn,
    lead: "Deine eigene KI-Plattform auf deinem eigenen Rechner.",
    about:
      "Chat, Agenten, Bilder und Audio mit jedem Modellserver, in einem Konto. Du siehst " +
      "jederzeit, was alles " +
      "kostet, und die API ist mit OpenAI kompatibel.",
    points: [
      ["chat", "Chatte mit all deinen Modellen und behalte deine Unterhaltungen."],
      ["agents", "Gib einem Agenten ein Ziel und verfolge jeden Schritt."],
      ["key", "Verwende dasselbe Konto mit curl, Python oder JavaScript."],
    ],
    signUp: "Konto erstellen",
    toSignIn: "Du hast schon ein Konto? Anmelden",
    toSignUp: "Konto erstellen",
    signUpAction: "Konto erstellen",
    show: "Passwort anzeigen",
    hide: "Passwort verbergen",
    forgot: "Passwort vergessen?",
    forgotTitle: "Passwort zurücksetzen",
    forgotText: "Wir senden dir einen Link per E-Mail. Er gilt eine Stunde lang.",
    forgotAction: "Link senden",
    forgotDone:
      "Wenn es ein Konto mit dieser E-Mail-Adresse gibt, haben wir einen Link gesendet. " +
      "Keine E-Mail bekommen? Bitte " +
      "den Betreiber dieses Dienstes um einen Link.",
    forgotNoMail: "Dieser Dienst sendet keine E-Mails. Bitte den Betreiber um einen Link.",
    back: "Zurück zur Anmeldung",
    closed: "Die Registrierung ist geschlossen. Bitte den Betreiber um ein Konto.",
    again: "Deine Sitzung ist abgelaufen",
    againText: (email) =>
      `Sitzungen dauern ${limits.session_hours} Stunden. Gib das Passwort von ${email} ein, ` +
      "um fortzufahren. " +
      "Deine Arbeit ist gespeichert.",
    againAction: "Weiter",
    otherAccount: "Anderes Konto verwenden",
    linked: "Verknüpft. Du kannst dich jetzt auch so anmelden.",
    trouble: {
      access_denied: "Die Anmeldung wurde abgebrochen oder vom Anbieter abgelehnt.",
      domain_not_allowed:
        "Für die Domain deiner E-Mail-Adresse ist die Registrierung geschlossen. Bitte den " +
        "Betreiber um ein Konto.",
      email_missing: "Der Anbieter hat deine E-Mail-Adresse nicht übermittelt. Ein Konto braucht eine.",
      email_not_verified:
        "Der Anbieter sagt nicht, dass deine E-Mail-Adresse bestätigt ist. Gib dem Betreiber Bescheid, " +
        "oder melde dich wie bisher an und verknüpfe diese Anmeldemethode in deinen Einstellungen.",
      email_taken:
        "Es gibt bereits ein Konto mit dieser E-Mail-Adresse. Melde dich wie bisher an oder " +
        "setze dein Passwort zurück. " +
        "Verknüpfe dann diese Anmeldemethode in deinen Einstellungen.",
      identity_taken: "Diese Identität ist mit einem anderen Konto verknüpft.",
      invalid_token:
        "Diese Anmeldung ist abgelaufen oder wurde in einem anderen Browser begonnen. " +
        "Versuche es noch einmal.",
      shutting_down: "Der Dienst startet gerade neu. Versuche es gleich noch einmal.",
      signup_closed:
        "Die Registrierung ist geschlossen, und du hast kein Konto. Bitte den Betreiber um eines.",
      storage_unavailable: "Der Dienst kann gerade keine Daten speichern. Versuche es später noch einmal.",
      other: "Der Anbieter war nicht erreichbar. Versuche es gleich noch einmal.",
    },
  },
};
