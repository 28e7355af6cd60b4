// What tools did for an answer: shown as it happens, folded when the answer is there.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { timelineOf } from "../run.js";
import { doing } from "./names.js";
import { Calls, Files } from "./step.js";
import { toolTexts } from "../texts/en/tools.js";

const t = toolTexts.steps;
const eventOf = ({ tool_call: call, tool_result: result }) =>
  call ? { type: "tool_call", ...call } : { type: "tool_result", ...result };

export default function Steps({ steps, isLive, isWaiting }) {
  const chosen = useSignal(null), // whether a person has opened or closed it
    entries = useMemo(() => timelineOf(steps.map(eventOf)), [steps]);
  const isOpen = chosen.value ?? isLive;
  const running = isLive && entries.findLast(({ done }) => !done);
  return html`<details
    class="fold tool-steps"
    open=${isOpen}
    onToggle=${({ currentTarget: { open } }) => {
      if (open !== isOpen) chosen.value = open;
    }}
  >
    <summary>
      ${
        isLive
          ? html`<span class="spinner" aria-hidden="true"></span>`
          : html`<${Icon} name="tools" size=${16} />`
      }
      <span class="one-line">${running ? doing(running) : t.title(entries.length)}</span>
    </summary>
    <div class="tool-list">
      <${Calls} entries=${entries} goesOn=${isLive} unfinished=${isWaiting ? t.waits : t.unfinished} />
    </div>
  </details>
    <${Files} entries=${entries} />
    <span class="hidden-text" role="status">${running ? doing(running) : ""}</span>`;
}
