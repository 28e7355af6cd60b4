// Spanish texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "Inicio de lo que lee el modelo",
    begins: "El modelo lee este chat desde aquí. Los mensajes anteriores no caben en su contexto.",
    summarized: "El modelo lee este chat desde aquí y un resumen de los mensajes anteriores.",
    summarize: "Resumir los mensajes anteriores",
    again: "Resumir de nuevo",
    cost: (amount) => `Cuesta unos ${amount}`,
    summary: "Resumen",
    edit: "Editar resumen",
    remove: "Quitar resumen",
    save: "Guardar",
    cancel: "Cancelar",
  },
};
