// The calls of an answer that wait for a person: what will be sent, to whom, what it costs, and the decision.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../components.js";
import { cost } from "../format.js";
import { html } from "../html.js";
import { tools } from "../tools.js";
import { argumentsOf, atServer, nameOf, visible } from "./names.js";
import { toolTexts } from "../texts/en/tools.js";

const t = toolTexts.approval;
const CHOICES = /** @type {const} */ (["once", "always", "deny"]);

/** The calls without a result. */
function waitingCalls(steps) {
  const done = new Set(steps.map(({ tool_result: result }) => result?.id));
  return steps.flatMap(({ tool_call: call }) => (call && !done.has(call.id) ? call : []));
}

export default function Approvals({ message, onDecide }) {
  const decided = useSignal(/** @type {Record<string, typeof CHOICES[number]>} */ ({})),
    busy = useSignal(false);
  const calls = waitingCalls(message.steps),
    left = calls.filter(({ id }) => !decided.value[id]).length;
  useEffect(() => {
    tools.ensure();
  }, []);
  const decide = async (id, choice) => {
    decided.value = { ...decided.peek(), [id]: choice };
    if (calls.some((call) => !decided.peek()[call.id])) return;
    busy.value = true;
    const now = decided.peek();
    const always = calls.filter((call) => now[call.id] === "always").map(({ name }) => name);
    await onDecide(
      message,
      Object.fromEntries(calls.map((call) => [call.id, now[call.id] !== "deny"])),
      always,
    );
    [decided.value, busy.value] = [{}, false]; // it failed, if this is still shown
  };
  return html`<section class="approvals" aria-label=${t.title}>
    <p class="label">${t.title}</p>
    ${calls.map(
      (call) => html`<${Approval}
        key=${call.id}
        call=${call}
        choice=${decided.value[call.id]}
        busy=${busy.value}
        onChoose=${(choice) => decide(call.id, choice)}
      />`,
    )}
    ${left > 0 && left < calls.length && html`<p role="status" class="hint">${t.left(left)}</p>`}
  </section>`;
}

function Approval({ call, choice, busy, onChoose }) {
  const name = nameOf(call.name),
    known = tools.data.value?.find((tool) => tool.name === call.name),
    there = atServer(call.name),
    box = useRef(null),
    before = useRef(choice);
  useEffect(() => {
    // The button that had the focus is gone
    if (before.current !== choice && document.activeElement === document.body)
      box.current.querySelector("button").focus();
    before.current = choice;
  }, [choice]);
  const price = known && (known.price_micros ? t.price(cost(known.price_micros)) : there && t.free);
  return html`<div class="approval" role="group" aria-label=${name} ref=${box}>
    <p class="item-title" dir="auto">${name}</p>
    <p class="quiet small">
      ${[there ? t.to(there.server) : t.service, price].filter(Boolean).join(" · ")}
      ${tools.data.value && !known && html` <span class="danger">${t.gone}</span>`}
    </p>
    <${Arguments} call=${call} />
    ${
      choice
        ? html`<div class="actions">
          <span class="quiet">${t.decided[choice]}</span>
          <${Button} small busy=${busy} onClick=${() => onChoose(undefined)}>${t.change}<//>
        </div>`
        : html`<div class="actions">
          ${CHOICES.map(
            (one) => html`<${Button}
            small
            kind=${one === "once" ? "primary" : "plain"}
            aria-label=${t.named(t[one], name)}
            onClick=${() => onChoose(one)}
          >${t[one]}<//>`,
          )}
        </div>`
    }
  </div>`;
}

const string = /("(?:[^"\\]|\\.)*")|\s+/g;

/** Whether an object is all that a JSON text says: a name may stand there twice, a number be too exact. */
function isWhole(given, text) {
  const plain = text.replace(string, (_, found) => (found ? JSON.stringify(JSON.parse(found)) : ""));
  return JSON.stringify(given) === plain;
}

/** All arguments, readable. Where that would not be exact, the text itself. */
function Arguments({ call }) {
  const given = argumentsOf(call),
    entries = Object.entries(given ?? {});
  if (!given || (call.arguments && !isWhole(given, call.arguments)))
    return html`<p class="quiet small">${t.exact}</p><pre tabindex="0">${visible(call.arguments)}</pre>`;
  if (!entries.length) return html`<p class="quiet small">${t.nothing}</p>`;
  return html`<dl>
    ${entries.map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
      return html`<div key=${name}>
        <dt>${visible(name)}</dt>
        <dd tabindex="0" dir="auto" class=${typeof value === "string" ? undefined : "mono"}>
          ${visible(text)}
        </dd>
      </div>`;
    })}
  </dl>`;
}
