// Portuguese texts of saved prompts.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  prompts: {
    intro: "Digite / no início de uma mensagem para usar um.",
    none: "Nenhum prompt ainda",
    noneText:
      "Salve textos que você envia com frequência. Escreva {{nome}} para um valor que será " +
      "pedido a cada vez.",
    create: "Novo prompt",
    edit: "Editar",
    editTitle: (name) => `Editar “${name}”`,
    actions: (name) => `Ações para ${name}`,
    name: "Nome",
    text: "Texto",
    textHint: "Escreva {{nome}} para um valor que será pedido a cada vez.",
    asksFor: (names) => `Pede: ${names.join(", ")}`,
    group: "Grupo",
    everyone: "Todos",
    deleteTitle: "Excluir este prompt?",
    deleteText: (name) => `“${name}” será excluído.`,
    deleted: (name) => `“${name}” foi excluído`,
    shared: "Compartilhados com você",
    sharedText: "Somente administradores podem alterar estes prompts.",
    more: "Importar e exportar",
    importAction: "Importar de um arquivo",
    exportAction: "Exportar para um arquivo",
    imported: (n) => count(n, { one: "# prompt importado.", other: "# prompts importados." }),
    skipped: (n) =>
      count(n, {
        one: "# prompt ignorado, porque você já tem um com esse nome.",
        other: "# prompts ignorados, porque você já tem outros com esses nomes.",
      }),
    tooLarge: "O arquivo tem mais de 10 MB. Escolha um menor.",
    notJson: "O arquivo não é JSON. Escolha um arquivo de prompts exportado.",
    noPrompts: "O arquivo não tem prompts. Escolha um arquivo de prompts exportado.",
    wrong: (n, field, most) => `Prompt ${n}: “${field}” deve ser um texto de 1 a ${most} caracteres.`,
    search: "Buscar prompts",
    choose: "Escolher um prompt",
    ofGroup: (name) => `Compartilhado com ${name}`,
    ofEveryone: "Compartilhado com todos",
    manage: "Gerenciar prompts",
    noMatch: "Nenhum prompt tem esse nome.",
    insert: "Inserir",
    adminIntro: "Os membros de um grupo veem os prompts dele ao digitar / em um chat.",
    adminNone: "Nenhum prompt compartilhado ainda",
  },
};
