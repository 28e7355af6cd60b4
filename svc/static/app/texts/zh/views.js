// Chinese texts of views that are loaded when first shown.
import { count, number } from "../locale.js";

export const importTexts = {
  intro:
    "从 ChatGPT、Claude、Open WebUI、LibreChat 或此服务的导出文件导入聊天。选择导出的 ZIP 或 JSON 文件，最大 200 MB。",
  action: "选择文件",
  sending: (size) => `正在上传，目前 ${size}…`,
  reading: (n) => `正在导入，目前 ${number(n)} 个对话…`,
  done: (source) => `从${source}的导入已完成。`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "此服务",
  },
  counts: ({ imported, skipped, failed }) =>
    `已导入 ${number(imported)} 个对话，跳过 ${skipped} 个，失败 ${failed} 个。`,
  details: "显示每个对话",
  statuses: { imported: "已导入", skipped: "已跳过", failed: "失败" },
  more: (n) => `以及另外 ${number(n)} 个。`,
  undo: "撤销导入",
  undoTitle: "撤销此次导入？",
  undoText:
    "导入的所有内容都会被删除，包括你之后在这些对话中写的内容。你可以重新导入文件。",
  undone: "已撤销导入。",
};

export const memoryTexts = {
  intro: "聊天可以回忆这些消息。被忘记的消息仍保留在其对话中。",
  search: "查看一个问题会回忆起什么",
  find: "搜索",
  forgotten: "显示已忘记的消息",
  none: "没有回忆到任何内容。",
  noneForgotten: "没有已忘记的消息。",
  forget: "忘记",
  remember: "恢复记忆",
  done: "聊天不再回忆此消息。",
  roles: { user: "你", assistant: "助手", system: "系统" },
};

export const temporaryTexts = {
  hint: "不会存储或回忆任何内容。重新加载页面后，此聊天会消失。",
  files: "临时聊天只接受文本文件，因为它不存储任何内容。",
};

export const projectsTexts = {
  intro:
    "项目将对话、运行和文件归在一起，并将其指令添加到每次聊天和智能体运行中。",
  none: "还没有项目",
  noneText: "项目将对话、运行和文件归在一起，并共用指令。",
  create: "新建项目",
  createAction: "创建项目",
  name: "名称",
  instructions: "指令",
  instructionsHint: "会添加到此项目的每个对话和智能体运行中。",
  noInstructions: "无指令",
  cap: "智能体运行的最大步骤数",
  capHint: "此项目中的运行不能使用更多步骤。",
  noCap: "无限制",
  back: "所有项目",
  newChat: "新聊天",
  newRun: "新建运行",
  files: {
    title: "文件",
    none: "还没有文件",
    noneText: "将文档拖到此处。此项目的聊天和运行可以搜索、阅读和引用它们。",
    dropHere: "拖放文件即可添加到此项目",
    add: "添加文件",
    choose: "添加已有文件",
    addAction: "添加",
    addNamed: (name) => `添加 ${name}`,
    added: "已添加",
    remove: (name) => `移除 ${name}`,
    removed: (name) => `已移除“${name}”，文件本身会保留。`,
    progress: (read, all) => `正在读取：已完成 ${read}/${number(all)} 个文件`,
    sum: (n, size) => `${number(n)} 个文件，${size} 文本`,
    states: { reading: "正在读取…", ready: "就绪" },
    failed: (reason) => `无法使用。${reason}`,
    inChat: (n) => `项目的 ${number(n)} 个文件`,
    notReady: { reading: "仍在读取", failed: "无法使用" },
    manage: "项目的文件",
  },
  conversations: "对话",
  runs: "智能体运行",
  nothingFiled: "这里还没有内容。",
  deleteTitle: "删除此项目？",
  deleteText: (name) =>
    `“${name}”及其指令将被删除。其中的对话、运行和文件会保留。`,
  deleted: (name) => `已删除“${name}”`,
};

export const mediaTexts = {
  intro: "创建图片和语音，它们会保存为文件。",
  kinds: { picture: "图片", sound: "语音" },
  prompt: "描述图片",
  size: "尺寸",
  number: "图片数量",
  draw: "生成",
  drawing: "正在生成…",
  again: (prompt) => `再次使用：${prompt}`,
  gallery: "图库",
  sounds: "音频",
  noPictures: "还没有图片",
  noSounds: "还没有音频",
  text: "要朗读的文本",
  voice: "声音",
  speed: "语速",
  cap: "最大时长",
  capChoice: (minutes, words) => `${minutes} 分钟，约 ${words} 个词`,
  speak: "生成语音",
  speaking: "正在生成语音…",
  truncated: (minutes) => `音频在 ${minutes} 处被截断。选择更长的最大时长即可听完全部内容。`,
  spoken: (length) => `${length} 的语音`,
  keep: "保存为文件",
  kept: "已保存",
  view: (name) => `查看 ${name}`,
  previous: "上一张图片",
  next: "下一张图片",
};
