import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "用于 Codex、Claude Code、脚本以及任何兼容 OpenAI 或 Anthropic 的工具。密钥与你拥有相同的权限，在你删除之前一直有效。",
    none: "还没有密钥",
    noneText: "为每个程序创建单独的密钥，以便分别删除。",
    create: "新建密钥",
    createAction: "创建密钥",
    name: "名称",
    nameHint: "例如“我的笔记本电脑”或“夜间报告”。",
    made: "创建于",
    used: "上次使用",
    neverUsed: "从未使用",
    spent: "已花费",
    edit: "编辑密钥",
    editNamed: (name) => `编辑密钥 ${name}`,
    deleteNamed: (name) => `删除密钥 ${name}`,
    deleteTitle: "删除此密钥？",
    deleteText: (name) => `使用“${name}”的程序会立即停止工作，此操作无法撤销。`,
    deleted: (name) => `已删除密钥“${name}”`,
    madeTitle: "你的新密钥",
    once: "请立即复制，之后将无法再次查看。",
    copyKey: "复制密钥",
    kept: "完成",
    use: "使用密钥",
    useHint: "将 YOUR_KEY 替换为你的密钥。",
    examples: "程序设置",
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
      "此服务使用自己的证书。在其他电脑上，请先将证书文件复制过去，并修改示例中的路径。",
  },
};
