// Spanish texts of the dialog that deletes the account.
import { texts as first } from "./settings.js";

export const texts = {
  ...first,
  settings: {
    ...first.settings,
    endTitle: "¿Eliminar tu cuenta?",
    endWhat:
      "Tus claves dejarán de funcionar, los agentes en marcha se detendrán y se eliminarán " +
      "tus conversaciones, artefactos, " +
      "proyectos y proveedores. Perderás tu saldo. Los movimientos se conservan sin tu " +
      "nombre. Esta acción no se puede " +
      "deshacer.",
    endConfirm: (email) => `Escribe ${email} para confirmar`,
    endDiffers: "Este no es el correo electrónico de esta cuenta.",
  },
};
