// Spanish texts of saved prompts.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  prompts: {
    intro: "Escribe / al principio de un mensaje para usar uno.",
    none: "Aún no hay prompts",
    noneText: "Guarda textos que envías a menudo. Escribe {{nombre}} para un valor que se pide cada vez.",
    create: "Nuevo prompt",
    edit: "Editar",
    editTitle: (name) => `Editar “${name}”`,
    actions: (name) => `Acciones de ${name}`,
    name: "Nombre",
    text: "Texto",
    textHint: "Escribe {{nombre}} para un valor que se pide cada vez.",
    asksFor: (names) => `Pide: ${names.join(", ")}`,
    group: "Grupo",
    everyone: "Todos",
    deleteTitle: "¿Eliminar este prompt?",
    deleteText: (name) => `“${name}” se eliminará.`,
    deleted: (name) => `Se eliminó “${name}”`,
    shared: "Compartidos contigo",
    sharedText: "Solo los administradores pueden modificar estos prompts.",
    more: "Importar y exportar",
    importAction: "Importar desde un archivo",
    exportAction: "Exportar a un archivo",
    imported: (n) => count(n, { one: "# prompt importado.", other: "# prompts importados." }),
    skipped: (n) =>
      count(n, {
        one: "# prompt omitido, porque ya tienes uno con ese nombre.",
        other: "# prompts omitidos, porque ya tienes otros con esos nombres.",
      }),
    tooLarge: "El archivo supera los 10 MB. Elige uno más pequeño.",
    notJson: "El archivo no es JSON. Elige un archivo de prompts exportado.",
    noPrompts: "El archivo no contiene prompts. Elige un archivo de prompts exportado.",
    wrong: (n, field, most) => `Prompt ${n}: “${field}” debe ser un texto de 1 a ${most} caracteres.`,
    search: "Buscar prompts",
    choose: "Elegir un prompt",
    ofGroup: (name) => `Compartido con ${name}`,
    ofEveryone: "Compartido con todos",
    manage: "Gestionar prompts",
    noMatch: "Ningún prompt tiene ese nombre.",
    insert: "Insertar",
    adminIntro: "Los miembros de un grupo ven sus prompts al escribir / en un chat.",
    adminNone: "Aún no hay prompts compartidos",
  },
};
