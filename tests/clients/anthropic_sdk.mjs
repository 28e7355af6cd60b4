// The `@anthropic-ai/sdk` package: messages.create, .stream, count_tokens, a tool loop and its own tool runner.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.BASE_URL, apiKey: process.env.KEY });
const say = (content) => [{ role: "user", content }];
const echoed = await client.messages.create({ model: "builtin/echo", max_tokens: 100, messages: say("Hello there 🙂") });

const types = [];
const stream = client.messages.stream({ model: "builtin/echo", max_tokens: 100, messages: say("Hello, stream") });
for await (const event of stream) types.push(event.type);
const streamed = await stream.finalMessage();

const tools = [
  {
    name: "calculate",
    description: "Computes.",
    input_schema: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
  },
];
const ask = { model: "builtin/assistant", max_tokens: 200, tools };
const messages = say("What is 12 * (3 + 4)?");
const asked = await client.messages.create({ ...ask, messages });
const call = asked.content.find((block) => block.type === "tool_use");
messages.push({ role: "assistant", content: asked.content });
messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "84" }] });
const answered = await client.messages.create({ ...ask, messages });

const expressions = [];
const runnable = {
  ...tools[0],
  run: ({ expression }) => expressions.push(expression) && "7",
  parse: (input) => input,
};
const steps = [1, 2, 3].map((number) => `tool calculate {"expression": "${number}"}`);
const script = [...steps, "say It is 7."].join("\n---\n");
const ran = await client.beta.messages.toolRunner({
  model: "builtin/script",
  max_tokens: 100,
  tools: [runnable],
  messages: say(script),
});

const counted = await client.messages.countTokens({ model: "builtin/echo", messages: say("Hello, tokens") });
const refused = await client.messages
  .create({ model: "no/such", max_tokens: 5, messages: say("x") })
  .catch((error) => error);

console.log(
  JSON.stringify({
    echoed: [echoed.content[0].text, echoed.stop_reason, echoed.usage.output_tokens > 0],
    types: [...new Set(types)],
    streamed: streamed.content[0].text,
    call: [call.name, asked.stop_reason],
    answered: answered.content[0].text,
    ran: [...expressions, ran.content[0].text],
    counted: counted.input_tokens,
    refused: [refused.constructor.name, refused.error.error.type, Boolean(refused.requestID)],
  }),
);
