// The panel of the composer's button: a switch for each tool.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { api } from "../api.js";
import { Button, Failed, Loading, Notice, placeBeside, Switch, toast } from "../components.js";
import { cost } from "../format.js";
import { changed } from "../conversation-list.js";
import { html } from "../html.js";
import { link } from "../router.js";
import { chooseTools, chosenTools, tools } from "../tools.js";
import { nameOf } from "./names.js";
import { toolTexts } from "../texts/en/tools.js";

const t = toolTexts.choice;
const DESCRIPTION_CHARACTERS = 140;

const short = (text) =>
  text.length > DESCRIPTION_CHARACTERS ? `${text.slice(0, DESCRIPTION_CHARACTERS)}…` : text;

const ORDER = Object.keys(toolTexts.toolNames);
/** What people use most comes first, then other tools of the service, then those of servers. */
const placeOf = ({ name, source }) => (source === "service" ? ORDER.indexOf(name) >>> 0 : Infinity);

export default function Choice({ id, conversation, isOff, close, anchor }) {
  const panel = useRef(null);
  const all = tools.data.value,
    chosen = chosenTools(id),
    allowed = conversation?.always_allow ?? [];
  useEffect(() => {
    tools.reload();
  }, []);
  useLayoutEffect(() => {
    placeBeside(panel.current, anchor.current);
    if (!panel.current.contains(document.activeElement)) panel.current.focus();
  }, [all === undefined, all?.length]);
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    event.preventDefault();
    close();
  };
  const turn = (name, on) => {
    const others = chosenTools(id).filter((one) => one !== name);
    chooseTools(id, on ? [...others, name] : others);
  };
  const sorted = all?.toSorted((one, other) => placeOf(one) - placeOf(other)) ?? [],
    sources = [...new Set(sorted.map(({ source }) => source))];
  const gone = all ? chosen.filter((name) => !all.some((tool) => tool.name === name)) : [];
  return html`<div
    class="picker-panel tool-choices"
    popover="manual"
    role="dialog"
    aria-label=${t.title}
    tabindex="-1"
    ref=${panel}
    onKeyDown=${onKey}
  >
    <p class="hint">${t.intro}</p>
    ${isOff && html`<${Notice} kind="warn">${t.cannot}<//>`}
    ${
      all === undefined
        ? tools.error.value
          ? html`<${Failed} error=${tools.error.value} retry=${tools.reload} />`
          : html`<${Loading} />`
        : !all.length && html`<p class="quiet">${t.none}</p>`
    }
    ${sources.map(
      (source) => html`<section key=${source}>
        <p class="label">${source === "service" ? t.service : t.ofServer(source)}</p>
        ${sorted
          .filter((tool) => tool.source === source)
          .map(
            (tool) => html`<${Tool}
            key=${tool.name}
            of=${tool}
            ...${{ isOff, id, turn, allowed, isOn: chosen.includes(tool.name) }}
          />`,
          )}
      </section>`,
    )}
    ${gone.length > 0 && html`<p class="hint">${t.gone(gone.join(", "))}</p>`}
    <div class="actions"><${Button} small href=${link("tool-servers")}>${t.servers}<//></div>
  </div>`;
}

function Tool({
  of: { name, description, ask, price_micros: price, source },
  id,
  isOn,
  isOff,
  turn,
  allowed,
}) {
  const isAllowed = ask && allowed.includes(name),
    facts = [
      price ? t.price(cost(price)) : source !== "service" && t.free,
      ask && (isAllowed ? t.always : t.asks),
    ];
  const askAgain = async () => {
    try {
      const left = allowed.filter((one) => one !== name);
      changed.value = await api.conversations.change(id, { always_allow: left });
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  const label = source === "service" ? nameOf(name) : name.slice(source.length + 2);
  const hint = (source === "service" && toolTexts.toolHints[name]) || short(description);
  return html`<div class="tool-choice">
    <${Switch}
      label=${label}
      hint=${html`<span dir="auto">${hint}</span>
        <span class="facts-inline">${facts.filter(Boolean).join(" · ")}</span>`}
      checked=${isOn}
      disabled=${isOff}
      onChange=${(on) => turn(name, on)}
    />
    ${
      isAllowed &&
      html`<${Button} small aria-label=${t.askAgainFor(label)} onClick=${askAgain}>${t.askAgain}<//>`
    }
  </div>`;
}
