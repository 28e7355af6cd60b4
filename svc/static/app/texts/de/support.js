import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "Schreib dem Betreiber dieses Dienstes. Du kannst eine offene Unterhaltung haben.",
    pro: "Support gehört zu Pro",
    proText: `Lade dein Guthaben um mindestens $${limits.least_dollars} auf, um Pro zu bekommen.`,
    oneActive: "Du hast eine offene Unterhaltung.",
    open: "Öffnen",
    earlier: "Unterhaltungen",
    none: "Noch keine Unterhaltungen.",
    untitled: "Kein Betreff",
    statuses: { active: "Offen", closed: "Geschlossen" },
    subject: "Betreff (optional)",
    message: "Nachricht",
    messages: "Nachrichten",
    send: "Senden",
    back: "Alle Unterhaltungen",
    roles: { user: "Du", operator: "Betreiber" },
    close: "Unterhaltung schließen",
    closeTitle: "Diese Unterhaltung schließen?",
    closeText: "Du kannst sie weiterhin lesen und eine neue beginnen.",
    closed: "Diese Unterhaltung ist geschlossen.",
  },
};
