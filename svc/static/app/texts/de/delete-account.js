// German texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "Dein Konto löschen?",
    endWhat:
      "Deine Schlüssel funktionieren nicht mehr, laufende Agenten werden gestoppt, und deine " +
      "Unterhaltungen, Artefakte, " +
      "Projekte und Anbieter werden gelöscht. Dein Guthaben verfällt. Buchungen bleiben ohne " +
      "deinen Namen erhalten. " +
      "Das kann nicht rückgängig gemacht werden.",
    endConfirm: (email) => `Gib zur Bestätigung ${email} ein`,
    endDiffers: "Das ist nicht die E-Mail-Adresse dieses Kontos.",
  },
};
