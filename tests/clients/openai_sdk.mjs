// The `openai` package: responses.create, .stream, .parse and a tool loop.
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: `${process.env.BASE_URL}/v1`, apiKey: process.env.KEY });
const echoed = await client.responses.create({ model: "builtin/echo", input: "Hello there 🙂" });

const types = [];
const stream = client.responses.stream({ model: "builtin/echo", input: "Hello, stream" });
for await (const event of stream) types.push(event.type);
const streamed = await stream.finalResponse();

const parsed = await client.responses.parse({
  model: "builtin/assistant",
  input: "What is 12 * (3 + 4)?",
  text: { format: zodTextFormat(z.object({ answer: z.string() }), "result") },
});

const tools = [
  {
    type: "function",
    name: "calculate",
    description: "Computes.",
    parameters: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
  },
];
const input = [{ role: "user", content: "What is 12 * (3 + 4)?" }];
const asked = await client.responses.create({ model: "builtin/assistant", input, tools });
const call = asked.output.find((item) => item.type === "function_call");
input.push(...asked.output, { type: "function_call_output", call_id: call.call_id, output: "84" });
const answered = await client.responses.create({ model: "builtin/assistant", input, tools });

const refused = await client.responses.create({ model: "no/such", input: "x" }).catch((error) => error);

console.log(
  JSON.stringify({
    echoed: [echoed.output_text, echoed.status, echoed.usage.total_tokens > 0],
    types,
    streamed: streamed.output_text,
    parsed: parsed.output_parsed,
    call: call.name,
    answered: answered.output_text,
    refused: [refused.constructor.name, refused.code],
  }),
);
