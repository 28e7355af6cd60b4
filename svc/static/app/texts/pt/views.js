// Portuguese texts of views that are loaded when first shown.
import { count, number } from "../locale.js";

export const importTexts = {
  intro:
    "Importe chats do ChatGPT, Claude, Open WebUI, LibreChat ou de uma exportação deste " +
    "serviço. Escolha o arquivo ZIP ou JSON da exportação, de no máximo 200 MB.",
  action: "Escolher um arquivo",
  sending: (size) => `Enviando, ${size} até agora…`,
  reading: (n) => `Importando, ${count(n, "conversa", "conversas")} até agora…`,
  done: (source) => `A importação de ${source} foi concluída.`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "este serviço",
  },
  counts: ({ imported, skipped, failed }) =>
    `${count(imported, "conversa importada", "conversas importadas")}, ${skipped} ignoradas, ` +
    `${failed} com falha.`,
  details: "Mostrar cada conversa",
  statuses: { imported: "Importada", skipped: "Ignorada", failed: "Falhou" },
  more: (n) => `E mais ${number(n)}.`,
  undo: "Desfazer importação",
  undoTitle: "Desfazer esta importação?",
  undoText:
    "Tudo o que foi importado será excluído, inclusive o que você escreveu nessas conversas " +
    "desde então. Você pode importar o arquivo novamente.",
  undone: "A importação foi desfeita.",
};

export const memoryTexts = {
  intro: "Os chats podem lembrar estas mensagens. Uma mensagem esquecida permanece na conversa.",
  search: "Ver o que os chats lembrariam com uma pergunta",
  find: "Buscar",
  forgotten: "Mostrar mensagens esquecidas",
  none: "Nenhuma lembrança.",
  noneForgotten: "Nenhuma mensagem foi esquecida.",
  forget: "Esquecer",
  remember: "Lembrar novamente",
  done: "Os chats não lembram mais esta mensagem.",
  roles: { user: "Você", assistant: "Assistente", system: "Sistema" },
};

export const temporaryTexts = {
  hint: "Nada é salvo nem lembrado. Este chat se perde ao recarregar a página.",
  files: "Um chat temporário só aceita arquivos de texto, porque não salva nada.",
};

export const projectsTexts = {
  intro:
    "Um projeto reúne conversas, execuções e artefatos, e adiciona suas instruções a cada " +
    "chat e a cada execução de agente.",
  none: "Nenhum projeto ainda",
  noneText: "Um projeto reúne conversas, execuções e artefatos com instruções em comum.",
  create: "Novo projeto",
  createAction: "Criar projeto",
  name: "Nome",
  instructions: "Instruções",
  instructionsHint: "Adicionadas a cada conversa e a cada execução de agente deste projeto.",
  noInstructions: "Sem instruções",
  cap: "Máximo de etapas de uma execução de agente",
  capHint: "As execuções deste projeto não podem usar mais etapas.",
  noCap: "Sem limite",
  back: "Todos os projetos",
  newChat: "Novo chat",
  newRun: "Nova execução",
  files: {
    title: "Arquivos",
    none: "Nenhum arquivo ainda",
    noneText:
      "Solte documentos aqui. Os chats e as execuções deste projeto podem pesquisá-los, lê-los e citá-los.",
    dropHere: "Solte arquivos para adicioná-los a este projeto",
    add: "Adicionar arquivos",
    choose: "Adicionar um artefato",
    addAction: "Adicionar",
    addNamed: (name) => `Adicionar ${name}`,
    added: "Adicionado",
    remove: (name) => `Remover ${name}`,
    removed: (name) => `“${name}” foi removido. O artefato permanece.`,
    progress: (read, all) => `Lendo: ${read} de ${count(all, "arquivo", "arquivos")}`,
    sum: (n, size) => `${count(n, "arquivo", "arquivos")}, ${size} de texto`,
    states: { reading: "Lendo…", ready: "Pronto" },
    failed: (reason) => `Não pode ser usado. ${reason}`,
    inChat: (n) => `${count(n, "arquivo", "arquivos")} do projeto`,
    notReady: { reading: "ainda está sendo lido", failed: "não pode ser usado" },
    manage: "Arquivos do projeto",
  },
  conversations: "Conversas",
  runs: "Execuções de agentes",
  nothingFiled: "Nada aqui ainda.",
  deleteTitle: "Excluir este projeto?",
  deleteText: (name) =>
    `“${name}” e suas instruções serão excluídos. As conversas, execuções e artefatos permanecem.`,
  deleted: (name) => `“${name}” foi excluído`,
};

export const mediaTexts = {
  intro: "Crie imagens e voz. Elas são salvas como artefatos.",
  kinds: { picture: "Imagem", sound: "Voz" },
  prompt: "Descreva a imagem",
  size: "Tamanho",
  number: "Número de imagens",
  draw: "Gerar",
  drawing: "Gerando…",
  again: (prompt) => `Usar novamente: ${prompt}`,
  gallery: "Galeria",
  sounds: "Áudio",
  noPictures: "Nenhuma imagem ainda",
  noSounds: "Nenhum áudio ainda",
  text: "Texto a ser falado",
  voice: "Voz",
  speed: "Velocidade",
  cap: "Duração máxima",
  capChoice: (minutes, words) => `${minutes} min, cerca de ${words} palavras`,
  speak: "Gerar voz",
  speaking: "Gerando voz…",
  truncated: (minutes) =>
    `O áudio foi cortado após ${minutes}. Escolha uma duração máxima maior para ouvir tudo.`,
  spoken: (length) => `${length} de fala`,
  keep: "Salvar como artefato",
  kept: "Salvo",
  view: (name) => `Ver ${name}`,
  previous: "Imagem anterior",
  next: "Próxima imagem",
};
