// What to copy into a terminal or a file so that a program uses this service with an API key.

const SAY = "What is 12 * (3 + 4)?";

export const TERMINAL = "Terminal";

/**
 * @typedef {{ title: string, code: string }} Block a file, or lines for a terminal
 * @typedef {{ origin: string, key: string, model: string }} Target
 * @param {Target & { context: number | null, certificate: string | null }} of
 * `context` is the model's context length in tokens; null if it is unknown. `certificate` is the file that
 * clients must trust; null if they trust the service already.
 * @returns {Record<string, Block[]>} by the program, in the order of their tabs
 */
export function examplesOf({ origin, key, model: wanted, context, certificate }) {
  // A model's name may hold what a shell would run.
  const model = /^[\w.:/@+-]+$/.test(wanted) ? wanted : "builtin/assistant";
  const base = `${origin}/v1`;
  /** Lines for a terminal; `trusts` is the variable that names the certificate there. */
  const shell = (trusts, ...lines) => ({
    title: TERMINAL,
    code: [...(certificate && trusts ? [`export ${trusts}="${certificate}"`] : []), ...lines].join("\n"),
  });
  const openai = [`export OPENAI_BASE_URL="${base}"`, `export OPENAI_API_KEY="${key}"`];
  const anthropic = [`export ANTHROPIC_BASE_URL="${origin}"`, `export ANTHROPIC_AUTH_TOKEN="${key}"`];
  return {
    codex: [
      {
        title: "~/.codex/config.toml",
        code: [
          `model = "${model}"`,
          ...(context ? [`model_context_window = ${context} # of this model, in tokens`] : []),
          'model_provider = "svc"',
          "",
          "[model_providers.svc]",
          'name = "svc"',
          `base_url = "${base}"`,
          'env_key = "SERVICE_API_KEY"',
          'wire_api = "responses"',
        ].join("\n"),
      },
      shell(
        "CODEX_CA_CERTIFICATE",
        `export SERVICE_API_KEY="${key}"`,
        `codex exec --skip-git-repo-check "${SAY}"`,
      ),
    ],
    claude: [
      shell(
        "NODE_EXTRA_CA_CERTS",
        ...anthropic,
        `export ANTHROPIC_MODEL="${model}"`,
        `export ANTHROPIC_DEFAULT_HAIKU_MODEL="${model}"`,
        ...(context ? [`export CLAUDE_CODE_MAX_CONTEXT_TOKENS=${context} # of this model`] : []),
        `claude -p "${SAY}"`,
      ),
    ],
    openaiPython: [
      shell("SSL_CERT_FILE", ...openai),
      {
        title: "example.py",
        code: [
          "import openai",
          "",
          "client = openai.OpenAI()",
          `answer = client.responses.create(model="${model}", input="${SAY}")`,
          "print(answer.output_text)",
        ].join("\n"),
      },
    ],
    openaiJavaScript: [
      shell("NODE_EXTRA_CA_CERTS", ...openai),
      {
        title: "example.mjs",
        code: [
          'import OpenAI from "openai";',
          "",
          "const client = new OpenAI();",
          `const answer = await client.responses.create({ model: "${model}", input: "${SAY}" });`,
          "console.log(answer.output_text);",
        ].join("\n"),
      },
    ],
    anthropicPython: [
      shell("SSL_CERT_FILE", ...anthropic),
      {
        title: "example.py",
        code: [
          "import anthropic",
          "",
          "client = anthropic.Anthropic()",
          "answer = client.messages.create(",
          `    model="${model}",`,
          "    max_tokens=1000,",
          `    messages=[{"role": "user", "content": "${SAY}"}],`,
          ")",
          "print(answer.content[0].text)",
        ].join("\n"),
      },
    ],
    anthropicJavaScript: [
      shell("NODE_EXTRA_CA_CERTS", ...anthropic),
      {
        title: "example.mjs",
        code: [
          'import Anthropic from "@anthropic-ai/sdk";',
          "",
          "const client = new Anthropic();",
          "const answer = await client.messages.create({",
          `  model: "${model}",`,
          "  max_tokens: 1000,",
          `  messages: [{ role: "user", content: "${SAY}" }],`,
          "});",
          "console.log(answer.content[0].text);",
        ].join("\n"),
      },
    ],
    curl: [
      shell(
        null,
        `curl -sS --fail-with-body ${certificate ? `--cacert "${certificate}" ` : ""}\\`,
        `  ${base}/chat/completions \\`,
        `  -H "Authorization: Bearer ${key}" \\`,
        '  -H "Content-Type: application/json" \\',
        `  -d '{"model": "${model}", "messages": [{"role": "user", "content": "${SAY}"}]}'`,
      ),
    ],
  };
}
