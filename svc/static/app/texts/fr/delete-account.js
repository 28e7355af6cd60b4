// French texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "Supprimer votre compte ?",
    endWhat:
      "Vos clés cesseront de fonctionner, les agents en cours s’arrêteront, et vos " +
      "conversations, artefacts, projets et fournisseurs seront supprimés. Le solde de votre " +
      "compte sera perdu. Les opérations restent sans votre nom. Cette action est " +
      "irréversible.",
    endConfirm: (email) => `Saisissez ${email} pour confirmer`,
    endDiffers: "Ce n’est pas l’adresse e-mail de ce compte.",
  },
};
