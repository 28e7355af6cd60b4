// Agents: start a run and follow its timeline; the list of runs and the record of each.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { SourceList } from "../answer-tools.js";
import { api } from "../api.js";
import { ArtifactCard } from "../artifact.js";
import {
  Button,
  Empty,
  Failed,
  Field,
  List,
  Loading,
  Money,
  Notice,
  Page,
  Time,
  toast,
} from "../components.js";
import { duration, modelName } from "../format.js";
import { html } from "../html.js";
import { limits } from "../limits.js";
import { Sources, withUnverified } from "../links.js";
import { Markdown } from "../markdown.js";
import { ModelPicker } from "../model-picker.js";
import { TextBlocks } from "../text-blocks.js";
import { go, link } from "../router.js";
import { beginRun, liveRun, runsChanged, timelineOf } from "../run.js";
import { pagedList, projects, remembered } from "../state.js";
import { sentenceOf } from "../sentences.js";
import { texts } from "../texts.js";
import { pair } from "../texts/locale.js";
import { tools as available } from "../tools.js";
import { nameOf } from "../tools/names.js";
import { Calls, Files } from "../tools/step.js";
import { agentTexts } from "../texts/en/tools.js";

const t = agentTexts;
const LOOK_AGAIN_MS = 2000;
const TITLE_CHARACTERS = 300;
const chosen = remembered("agent", { model: null, steps: 6, tools: null });
const goal = remembered("agent-goal", "");
const filter = signal("");

export default function Agents({ path, query }) {
  useEffect(() => {
    projects.ensure();
    available.ensure();
  }, []);
  return path[0]
    ? html`<${Run} key=${path[0]} id=${path[0]} />`
    : html`<${Start} key=${query.project_id ?? ""} project=${query.project_id} />`;
}

// --- a new run

function Start({ project }) {
  return html`<${Page} title=${texts.views.agents} intro=${t.intro}>
    <${Form} project=${project} /><${Runs} project=${project} /><//>`;
}

function Form({ project: given }) {
  const busy = useSignal(false),
    error = useSignal(null),
    project = useSignal(given ?? ""),
    form = useRef(null);
  const { model, steps, tools } = chosen.value;
  const isThere = (name) => available.data.peek()?.some((tool) => tool.name === name) ?? true;
  const set = (what) => {
    chosen.value = { ...chosen.peek(), ...what };
  };
  const start = async (event) => {
    event.preventDefault();
    const body = {
      goal: goal.peek(),
      max_steps: steps,
      ...(model && { model }),
      ...(tools && { tools: tools.filter(isThere) }),
      ...(project.peek() && { project_id: project.peek() }),
    };
    [busy.value, error.value] = [true, null];
    try {
      const id = await beginRun(body);
      goal.value = "";
      go(link("agents", id));
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const onKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.current.requestSubmit();
  };
  const toggle = (name, on) => {
    const now = tools ?? [];
    set({ tools: on ? [...now, name] : now.filter((one) => one !== name) });
  };
  const names = [["", t.noProject], ...(projects.data.value ?? []).map(({ id, name }) => [id, name])];
  return html`<form class="card stack goal-form" ref=${form} onSubmit=${start} onKeyDown=${onKey}>
    <${Field}
      label=${t.goal}
      rows="3"
      required
      hint=${t.goalHint}
      value=${goal.value}
      onInput=${(event) => {
        goal.value = event.currentTarget.value;
      }}
      error=${error.value?.param === "goal" ? error.value.message : null}
    />
    <div class="options">
      <div class="field">
        <label for="agent-model">${t.model}</label>
        <${ModelPicker} id="agent-model" value=${model} onChange=${(id) => set({ model: id })} />
      </div>
      <${Field}
        label=${t.steps}
        value=${String(steps)}
        options=${Array.from({ length: limits.run.max_steps.max }, (_, at) => [
          String(at + 1),
          String(at + 1),
        ])}
        onChange=${(event) => set({ steps: Number(event.currentTarget.value) })}
      />
      ${
        names.length > 1 &&
        html`<${Field}
          label=${t.project}
          value=${project.value}
          options=${names}
          onChange=${(event) => {
            project.value = event.currentTarget.value;
          }}
        />`
      }
    </div>
    <details class="table-fold">
      <summary>${pair(t.tools, tools ? t.someTools(tools.filter(isThere).length) : t.allTools)}</summary>
      <fieldset class="tool-choice">
        <legend class="hidden-text">${t.tools}</legend>
        <label class="check">
          <input
            type="checkbox"
            checked=${!tools}
            onChange=${(event) => set({ tools: event.currentTarget.checked ? null : [] })}
          />
          ${t.allTools}
        </label>
        ${
          tools &&
          html`<div class="tool-grid">
            ${(available.data.value ?? []).map(
              ({ name, ask, source }) => html`<label class="check" key=${name}>
              <input
                type="checkbox"
                checked=${tools.includes(name)}
                onChange=${(event) => toggle(name, event.currentTarget.checked)}
              />
              <span>
                ${source === "service" ? nameOf(name) : name.replace("__", ": ")}
                ${ask && html`<small class="quiet tool-asks">${t.asks}</small>`}
              </span>
            </label>`,
            )}
          </div>`
        }
      </fieldset>
    </details>
    ${error.value && error.value.param !== "goal" && html`<${Failed} error=${error.value} />`}
    <div class="actions">
      <${Button} kind="primary" type="submit" icon="play" busy=${busy.value} disabled=${!goal.value.trim()}>
        ${t.run}
      <//>
    </div>
  </form>`;
}

// --- the list

function Runs({ project }) {
  const list = useMemo(
    () =>
      pagedList((after) => api.agents.list({ limit: 20, after, status: filter.peek(), project_id: project })),
    [project],
  );
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) list.reload();
    first.current = false;
  }, [runsChanged.value, filter.value]);
  const empty = filter.value
    ? html`<p class="quiet">${t.noneOfKind}</p>`
    : html`<${Empty} icon="agents" title=${t.none} text=${t.noneText} />`;
  return html`
    <div class="section-head">
      <h2>${t.runs}</h2>
      <${Field}
        label=${t.filter}
        hideLabel
        value=${filter.value}
        options=${[["", t.all], ...Object.entries(t.statuses)]}
        onChange=${(event) => {
          filter.value = event.currentTarget.value;
        }}
      />
    </div>
    <${List} of=${list} empty=${empty}>
      ${(run) => html`<li key=${run.id}>
        <a class="grow item-link" href=${link("agents", run.id)}>
          <p class="item-title one-line">${run.goal}</p>
          <p class="quiet small">
            <${Time} at=${run.created_at} /> · ${modelName(run.model)} · ${t.steps_used(run.steps)}
            ${run.cost_micros > 0 && html` · <${Money} micros=${run.cost_micros} />`}
          </p>
        </a>
        <${Status} of=${run.status} />
      </li>`}
    <//>
  `;
}

const Status = ({ of }) => html`<span class="status status-${of}">${t.statuses[of]}</span>`;

// --- one run

function Run({ id }) {
  const record = useSignal(/** @type {Api.RunWithEvents} */ (undefined)),
    error = useSignal(null),
    made = useSignal([]);
  const live = liveRun(id),
    ended = live?.end.value;
  const load = async () => {
    try {
      const [run, files] = await Promise.all([
        api.agents.show(id),
        api.artifacts.list({ run_id: id, limit: 100 }),
      ]);
      [record.value, made.value, error.value] = [run, files.data.reverse(), null];
    } catch (problem) {
      error.value = problem;
    }
  };
  useEffect(() => {
    load();
  }, [ended, live?.lost.value]);
  const running = record.value?.status === "running";
  useEffect(() => {
    // A run that another page started cannot be followed live, so its record is polled.
    if (!running || (live && !ended && !live.lost.value)) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) load();
    }, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [running, live, ended]);
  if (record.value === undefined)
    return html`<div class="page">
      ${error.value ? html`<${Failed} error=${error.value} retry=${load} />` : html`<${Loading} />`}
    </div>`;
  const run = record.value;
  const goesOn = live ? !ended && !live.lost.value : running;
  const stop = async () => {
    try {
      await api.agents.stop(id);
      if (!live) await load();
    } catch (problem) {
      if (problem.code !== "already_ended") toast(problem.message, { kind: "bad" });
      load();
    }
  };
  const again = () => {
    goal.value = run.goal;
    chosen.value = { ...chosen.peek(), model: run.model, steps: run.max_steps };
    go(run.project_id ? link("agents", { project_id: run.project_id }) : link("agents"));
  };
  const entries = live?.timeline.value ?? timelineOf(run.events);
  const inTimeline = new Set(entries.map(({ result }) => result?.id));
  const files = made.value.filter((artifact) => !inTimeline.has(artifact.id));
  return html`<div class="page">
    <p class="back"><a href=${link("agents")}>${t.back}</a></p>
    <div class="section-head">
      <h1 tabindex="-1" class="plain-text run-goal">${short(run.goal)}</h1>
      <div class="actions">
        ${
          goesOn
            ? html`<${Button} icon="stop" onClick=${stop}>${t.stop}<//>`
            : html`<${Button} icon="retry" onClick=${again}>${t.again}<//>`
        }
      </div>
    </div>
    <p class="run-facts">
      <${Status} of=${goesOn ? "running" : run.status} /><span>${modelName(run.model)}</span>
      <span><${Time} at=${run.created_at} /></span>
      ${!goesOn && html`<${Facts} of=${run} />`}
    </p>
    ${
      short(run.goal) !== run.goal &&
      html`<details class="table-fold">
        <summary>${t.wholeGoal}</summary>
        <p class="plain-text"><${TextBlocks} text=${run.goal} /></p>
      </details>`
    }
    ${error.value && html`<${Failed} error=${error.value} retry=${load} />`}
    ${
      (live || entries.length > 0) &&
      html`
        <h2 class="hidden-text">${t.timeline}</h2>
        <${Sources.Provider} value=${run.sources}>
          <${Timeline} entries=${entries} goesOn=${goesOn} />
        <//>
      `
    }
    ${
      !live &&
      goesOn &&
      html`<${Notice} kind="info" icon="agents">${t.elsewhere}<p>${t.steps_used(run.steps)}<//><//>`
    }
    ${live?.lost.value && html`<${Notice} kind="warn" icon="warning">${t.lost}<//>`}
    ${!goesOn && run.status !== "running" && html`<${End} run=${run} finishReason=${ended?.finish_reason} />`}
    ${
      files.length > 0 &&
      html`
        <h2>${t.artifacts}</h2>
        <div class="stack">
          ${files.map((artifact) => html`<${ArtifactCard} key=${artifact.id} of=${artifact} />`)}
        </div>
      `
    }
  </div>`;
}

const short = (goal) => (goal.length > TITLE_CHARACTERS ? `${goal.slice(0, TITLE_CHARACTERS)}…` : goal);

function Facts({ of: run }) {
  const took = run.finished_at && Date.parse(run.finished_at) - Date.parse(run.created_at);
  return html`
    <span>${t.steps_used(run.steps)}</span>
    <span>${t.tokens(run.usage.total_tokens)}</span>
    <span><${Money} micros=${run.cost_micros} /></span>
    ${took !== null && html`<span>${duration(took)}</span>`}
  `;
}

function End({ run, finishReason }) {
  const why =
    run.status === "error"
      ? sentenceOf(run.error)
      : run.status === "stopped"
        ? (t.reasons[run.reason] ?? run.reason)
        : t.finishReasons[finishReason ?? run.finish_reason];
  return html`<section
    class="run-end run-end-${run.status}"
    role=${run.status === "error" ? "alert" : "status"}
    aria-label=${t.statuses[run.status]}
  >
    <p><strong>${t.statuses[run.status]}</strong>${why && html` · ${why}`}</p>
    ${
      run.output &&
      html`<${Sources.Provider} value=${run.sources}>
        <${Markdown} text=${withUnverified(run.output, run.citations)} />
      <//>`
    }
    <${SourceList} text=${run.output ?? ""} sources=${run.sources} citations=${run.citations} />
    ${
      ["insufficient_funds", "spending_limit_reached"].includes(run.error?.code) &&
      html`<div class="actions"><${Button} small href=${link("wallet")}>${texts.common.toWallet}<//></div>`
    }
  </section>`;
}

function Timeline({ entries, goesOn }) {
  return html`<ol class="timeline" aria-live="polite" aria-busy=${String(goesOn)}>
    ${entries.map((entry, at) => {
      if (entry.kind === "step") return html`<li key=${at} class="timeline-step">${t.step(entry.step)}</li>`;
      if (entry.kind === "text") return html`<li key=${at}><${Markdown} text=${entry.text} /></li>`;
      if (entry.kind === "truncated") return html`<li key=${at} class="quiet small">${t.truncated}</li>`;
      if (entry.within) return null; // below its call
      const calls = [entry, ...entries.filter(({ within }) => within === entry.id)];
      return html`<li key=${at}>
        <${Calls} entries=${calls} goesOn=${goesOn} /><${Files} entries=${calls} />
      </li>`;
    })}
    ${
      goesOn &&
      html`<li class="quiet small" role="status">
        <span class="spinner" aria-hidden="true"></span> ${t.working}
      </li>`
    }
  </ol>`;
}
