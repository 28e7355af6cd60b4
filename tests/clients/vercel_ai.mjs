// The Vercel AI SDK with openai() (Responses) and anthropic() (Messages): text, a stream, and a loop of tools that it runs itself.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { BASE_URL, KEY } = process.env;
const openai = createOpenAI({ baseURL: `${BASE_URL}/v1`, apiKey: KEY });
const anthropic = createAnthropic({ baseURL: `${BASE_URL}/v1`, apiKey: KEY });

async function tried(provider, coder) {
  const generated = await generateText({ model: provider("builtin/echo"), prompt: "Hello there" });
  const stream = streamText({ model: provider("builtin/echo"), prompt: "Hello, stream" });
  let streamed = "";
  for await (const text of stream.textStream) streamed += text;
  const expressions = [];
  const calculate = tool({
    description: "Computes.",
    inputSchema: z.object({ expression: z.string() }),
    execute: async ({ expression }) => {
      expressions.push(expression);
      return "84";
    },
  });
  // Its second request refers to the first answer's items by id, as this SDK does by default.
  const looped = await generateText({
    model: provider(coder),
    prompt: 'say One moment.\ntool calculate {"expression": "12 * 7"}\n---\nsay It is 84.',
    tools: { calculate },
    stopWhen: stepCountIs(4),
  });
  const structured = await generateText({
    model: provider("coder"),
    prompt: 'say {"value": 84}',
    output: Output.object({ schema: z.object({ value: z.number() }) }),
  });
  return {
    value: structured.output.value,
    generated: generated.text,
    finish: generated.finishReason,
    streamed,
    tokens: (await stream.usage).totalTokens > 0,
    expressions,
    looped: looped.text,
    steps: looped.steps.length,
  };
}

console.log(JSON.stringify({ openai: await tried(openai, "thinker"), anthropic: await tried(anthropic, "thinker") }));
