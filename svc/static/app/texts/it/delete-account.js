// Italian texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "Eliminare il tuo account?",
    endWhat:
      "Le tue chiavi smettono di funzionare, gli agenti in esecuzione si fermano e " +
      "conversazioni, artefatti, progetti e provider vengono eliminati. Il saldo va perso. I " +
      "movimenti restano senza il tuo nome. L’operazione non può essere annullata.",
    endConfirm: (email) => `Digita ${email} per confermare`,
    endDiffers: "Questa non è l’email di questo account.",
  },
};
