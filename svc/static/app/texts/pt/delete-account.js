// Portuguese texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "Excluir sua conta?",
    endWhat:
      "Suas chaves param de funcionar, os agentes em execução param, e suas conversas, " +
      "artefatos, projetos e provedores são excluídos. O saldo é perdido. Os lançamentos do " +
      "extrato permanecem sem o seu nome. Esta ação não pode ser desfeita.",
    endConfirm: (email) => `Digite ${email} para confirmar`,
    endDiffers: "Este não é o e-mail desta conta.",
  },
};
