import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  providers: {
    ...first.providers,
    intro:
      "Conecte seus próprios servidores de modelos com suas próprias chaves de API. O uso " +
      "deles aqui é grátis.",
    none: "Nenhum provedor ainda",
    noneText: "Conecte qualquer servidor compatível com OpenAI: de um fornecedor ou da sua própria máquina.",
    notAllowed: "O operador deste serviço não permite servidores de modelos e de ferramentas próprios.",
    add: "Adicionar provedor",
    addAction: "Adicionar",
    connectTitle: (program) => `Conectar ${program}`,
    connectSteps: {
      ollama: [
        "Instale o Ollama (ollama.com) no computador que executa este serviço.",
        "Baixe um modelo. Em um terminal, execute:",
        "Os modelos aparecem no seletor de modelos. Isso pode levar um minuto.",
      ],
      lmstudio: [
        "Instale o LM Studio (lmstudio.ai) no computador que executa este serviço e baixe um modelo.",
        "Inicie o servidor. Em um terminal, execute:",
        "Os modelos aparecem no seletor de modelos. Isso pode levar um minuto.",
      ],
    },
    elsewhere: "Ele é executado em outro computador",
    checkAgain: "Verificar novamente",
    notFound: (program) => `Nenhum modelo do ${program} encontrado.`,
    found: (program, n) =>
      `Conectado ao ${program}: ${count(n, "modelo encontrado", "modelos encontrados")}.`,
    added: (name) => `${name} foi adicionado`,
    name: "Nome",
    nameHint: "Letras minúsculas, dígitos, - e _. Os modelos se chamam nome/modelo.",
    baseUrl: "URL base",
    baseUrlHint: "O endereço da API, que geralmente termina em /v1.",
    format: "Formato",
    formatHint: "O teste de um provedor mostra quais formatos ele responde.",
    formats: { chat: "Chat completions", responses: "Responses", messages: "Messages" },
    answers: (formats) => `Responde a ${formats.join(", ")}.`,
    apiKey: "Chave de API",
    apiKeyHint:
      "Deixe em branco se o servidor não precisar de uma. A chave é criptografada e nunca mais é exibida.",
    keyStays: (hint) => `Deixe em branco para manter a chave salva (${hint}).`,
    keyDropped: "A URL mudou. Sem uma nova chave, a chave salva será excluída.",
    keyEnding: (hint) => `chave ${hint}`,
    withKey: "com chave",
    noKey: "sem chave",
    withoutKey: "Remover a chave salva",
    models: "Modelos",
    modelsHint:
      "Um modelo por linha. Deixe em branco para usar todos. Adicione “image”, “speech” ou " +
      "“transcription” depois de um modelo desse tipo.",
    allModels: "todos os modelos",
    narrowed: (n) => count(n, "modelo", "modelos"),
    test: "Testar",
    works: (n) => `Conectado: ${count(n, "modelo encontrado", "modelos encontrados")}.`,
    worksEmpty: "Conectado, mas o servidor não lista nenhum modelo.",
    andMore: (n) => ` e mais ${n}`,
    actions: (name) => `Ações para ${name}`,
    edit: "Editar",
    editTitle: (name) => `Editar ${name}`,
    deleteTitle: "Excluir este provedor?",
    deleteText: (name) =>
      `Os modelos de “${name}” e a chave salva serão excluídos. Esta ação não pode ser desfeita.`,
    deleted: (name) => `${name} foi excluído`,
  },
};
