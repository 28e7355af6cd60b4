import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "Para Codex, Claude Code, scripts e qualquer ferramenta compatível com OpenAI ou " +
      "Anthropic. Uma chave tem o mesmo acesso que você e vale até ser excluída.",
    none: "Nenhuma chave ainda",
    noneText: "Crie uma chave para cada programa, para poder excluí-las separadamente.",
    create: "Nova chave",
    createAction: "Criar chave",
    name: "Nome",
    nameHint: "Por exemplo, “meu notebook” ou “relatório noturno”.",
    made: "criada",
    used: "último uso",
    neverUsed: "nunca usada",
    spent: "gasto",
    edit: "Editar chave",
    editNamed: (name) => `Editar a chave ${name}`,
    deleteNamed: (name) => `Excluir a chave ${name}`,
    deleteTitle: "Excluir esta chave?",
    deleteText: (name) =>
      `Os programas que usam “${name}” param de funcionar imediatamente. Esta ação não pode ser desfeita.`,
    deleted: (name) => `A chave “${name}” foi excluída`,
    madeTitle: "Sua nova chave",
    once: "Copie-a agora. Você não poderá vê-la novamente.",
    copyKey: "Copiar chave",
    kept: "Concluído",
    use: "Usar uma chave",
    useHint: "Substitua YOUR_KEY por uma das suas chaves.",
    examples: "Configurações para programas",
    terminal: "Terminal",
    programs: {
      codex: "Codex",
      claude: "Claude Code",
      openaiPython: "OpenAI Python",
      openaiJavaScript: "OpenAI JS",
      anthropicPython: "Anthropic Python",
      anthropicJavaScript: "Anthropic JS",
      curl: "curl",
    },
    certificate:
      "Este serviço usa o próprio certificado. Em outro computador, copie primeiro o arquivo " +
      "do certificado para lá e altere o caminho no exemplo.",
  },
};
