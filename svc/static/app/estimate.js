// The cost of a message before it is sent: what it probably costs, and what it costs at most.
import { useMemo } from "preact/hooks";
import { balance, estimate } from "./format.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { models, projects, settings, wallet } from "./state.js";
import { texts } from "./texts/en/estimate.js";

const t = texts.estimate;
const USUAL_OUTPUT = 300; // tokens of an answer in a chat without answers
const USUAL_PICTURE = 1_000; // tokens
// As the service counts when it reserves the cost (svc/inference/tokens.py): 1 token for each byte of the
// JSON, and some more for each message and each part of one.
const BODY_TOKENS = 150; // the other fields
const MESSAGE_TOKENS = limits.frame_tokens + '{"role":"assistant","content":[]},'.length;
const PART_TOKENS = limits.frame_tokens + '{"type":"image_url","image_url":{"url":""}},'.length;
const MEMORY_TOKENS = 3_000; // passages of the memory, and a fallback's name

const utf8 = new TextEncoder();
const sizeOf = (text) => utf8.encode(text ?? "").length;
const sizeInJson = (text) => sizeOf(JSON.stringify(text ?? ""));
const sizes = new WeakMap(); // of messages, each counted once

/** The bytes of a message: `{bytes, written}`, `written` being in JSON. */
function sizesOf(message) {
  if (!sizes.has(message)) {
    const { content } = message;
    sizes.set(message, { bytes: sizeOf(content), written: sizeInJson(content) });
  }
  return sizes.get(message);
}

/**
 * The sizes of what is sent before the draft: `{bytes, written, count, tokens, output}`, `written` being
 * in JSON.
 */
function historyOf(messages) {
  const answers = messages.filter(({ answer }) => answer?.output_tokens);
  const last = answers.at(-1)?.answer;
  const bytes = messages.reduce((sum, message) => sum + sizesOf(message).bytes, 0);
  return {
    bytes,
    written: messages.reduce((sum, message) => sum + sizesOf(message).written, 0),
    count: messages.length,
    // The model server has counted the earlier messages, also those that are not loaded here.
    tokens: Math.max(bytes / limits.bytes_per_token, last ? last.input_tokens + last.output_tokens : 0),
    output: answers.length
      ? answers.reduce((sum, { answer }) => sum + answer.output_tokens, 0) / answers.length
      : USUAL_OUTPUT,
  };
}

/** Return the sizes of what fits into the context of a model. The service leaves out the rest. */
function fitted(history, context) {
  const most = (context ?? limits.unknown_context_tokens) * limits.fitted_bytes_per_token,
    share = Math.min(1, most / Math.max(1, history.bytes));
  const { bytes, written, count, tokens, output } = history;
  return {
    bytes: bytes * share,
    written: written * share,
    count: Math.ceil(count * share),
    tokens: share < 1 ? Math.min(tokens, most / limits.fitted_bytes_per_token) : tokens,
    output,
  };
}

/** Return `{usual, most}` in micros, and `least`: what must be available. */
function costOf({ pricing, history, draft, pictures, instructions, limit }) {
  const { output_micros_per_million_tokens: output = 0, ...inputs } = pricing;
  const dearest = Math.max(0, ...Object.values(inputs)); // cached and written input have other prices
  const total = (inputs, outputs, price = dearest) =>
    Math.ceil((inputs * price + outputs * output) / 1_000_000);
  const added = sizeOf(draft);
  // The earlier messages that are not loaded here are in the count of the model server.
  const unloaded = Math.max(0, history.tokens * limits.bytes_per_token - history.bytes);
  const bytes = history.written + unloaded + instructions + sizeInJson(draft) + BODY_TOKENS;
  // The text is a part, too.
  const pictureTokens = pictures && PART_TOKENS + (limits.media_tokens + PART_TOKENS) * pictures;
  const frames = MESSAGE_TOKENS * (history.count + 2) + pictureTokens;
  const usual = history.tokens + (added + instructions) / limits.bytes_per_token + USUAL_PICTURE * pictures;
  return {
    usual: total(usual, Math.min(history.output, limit), inputs.input_micros_per_million_tokens),
    most: total(bytes + frames + MEMORY_TOKENS, limit),
    least: total(bytes + frames, limits.least_output_tokens),
  };
}

/**
 * `draft`: the content that would be sent; `modelIds`: the models that answer, null for the default. Draws
 * nothing for free models.
 */
export function Estimate({ id, modelIds, messages, conversation, projectId, draft, pictures }) {
  const isNeeded = Boolean(draft || pictures);
  const history = useMemo(() => isNeeded && historyOf(messages ?? []), [messages, isNeeded]);
  const used = modelIds.map((modelId) => {
    const name = modelId ?? settings.data.value?.chat_model;
    return models.data.value?.find((one) => one.id === name);
  });
  const { available_micros: own, allowance_due_micros: due } = wallet.data.value ?? {};
  const available = own + due; // the next request books the due allowance
  if (!isNeeded) return null;
  const written = sizeOf(draft) / limits.bytes_per_token;
  const tooSmall = used.find((model) => model?.context_length && written > model.context_length);
  if (tooSmall) return html`<p id=${id} class="estimate warn">${t.tooLong(tooSmall.context_length)}</p>`;
  const paid = used.filter((model) => model && !model.byok && hasPrice(model));
  if (!paid.length || Number.isNaN(available)) return null;
  const project = projects.data.value?.find((one) => one.id === (conversation?.project_id ?? projectId));
  const limit = conversation?.max_output_tokens ?? limits.output_tokens;
  const instructions = sizeInJson(project?.instructions) + sizeInJson(settings.data.value?.instructions);
  const costs = paid.map(({ pricing, context_length: context }) =>
    costOf({ pricing, history: fitted(history, context), draft, pictures, instructions, limit }),
  );
  const sum = (name) => costs.reduce((all, cost) => all + cost[name], 0);
  if (sum("least") > available)
    return html`<p id=${id} class="estimate warn">${t.noFunds(balance(available))}</p>`;
  const most = Math.min(sum("most"), available);
  return html`<p id=${id} class="estimate" title=${t.explained(limit)}>
    ${t.cost(estimate(Math.min(sum("usual"), most)), estimate(most))}
  </p>`;
}

const hasPrice = ({ pricing }) =>
  pricing?.input_micros_per_million_tokens > 0 || pricing?.output_micros_per_million_tokens > 0;
