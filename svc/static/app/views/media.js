// Images and audio: generated from a prompt or a text, and saved as artifacts.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useId, useMemo } from "preact/hooks";
import { api } from "../api.js";
import { stepOf } from "../arrows.js";
import { kindOf, saveArtifact, ArtifactCard } from "../artifact.js";
import {
  Button,
  Dialog,
  Empty,
  Failed,
  Field,
  IconButton,
  Loading,
  Money,
  Notice,
  Page,
  toast,
} from "../components.js";
import { saveFile } from "../files.js";
import { duration, estimate } from "../format.js";
import { html } from "../html.js";
import { limits } from "../limits.js";
import { usedModel } from "../model-picker.js";
import { pictureOf } from "../pictures.js";
import { speech as said } from "../read-aloud.js";
import { models, modelsOf, remembered, wallet } from "../state.js";
import { texts } from "../texts/en/estimate.js";
import { agentTexts } from "../texts/en/tools.js";
import { mediaTexts } from "../texts/en/views.js";

const t = mediaTexts;
const SIZES = [
  "1024x1024",
  "1024x768",
  "768x1024",
  "512x512",
  "256x256",
  "1536x1024",
  "1024x1536",
  "1792x1024",
  "1024x1792",
];
const CAPS = [4096, 8192, 16384, 32768]; // audio tokens: 4,096 are three minutes
const WORDS_PER_TOKEN = 400 / 4096;
const kind = remembered("media-kind", "picture");
const drawn = remembered("media-picture", { prompt: "", size: SIZES[0], n: 1, model: null });
const VOICES = [
  "alloy",
  "ash",
  "ballad",
  "coral",
  "echo",
  "fable",
  "nova",
  "onyx",
  "sage",
  "shimmer",
  "verse",
];

export default function Media() {
  useEffect(() => {
    models.ensure();
  }, []);
  return html`<${Page} title=${texts.views.media} intro=${t.intro} wide>
    <div class="segmented" role="group" aria-label=${texts.views.media}>${Object.entries(t.kinds).map(
      ([name, label]) =>
        html`<button
          type="button"
          aria-pressed=${String(kind.value === name)}
          onClick=${() => {
            kind.value = name;
          }}
        >${label}</button>`,
    )}</div>
    ${kind.value === "picture" ? html`<${Pictures} />` : html`<${Sounds} />`}<//>`;
}

/** Load pages of artifacts until there are enough of one kind. */
function shelf(wanted) {
  const items = signal(/** @type {Api.Artifact[]} */ (undefined)),
    more = signal(false),
    error = signal(null),
    busy = signal(false);
  const ask = async (fresh) => {
    busy.value = true;
    try {
      let after = fresh ? undefined : shelfEnd,
        found = fresh ? [] : (items.peek() ?? []);
      for (let page, before = found.length; found.length - before < 24 && (!page || page.has_more); ) {
        page = await api.artifacts.list({ limit: 100, after });
        found = [...found, ...page.data.filter((one) => kindOf(one) === wanted)];
        after = page.data.at(-1)?.id;
        more.value = page.has_more;
      }
      shelfEnd = after;
      [items.value, error.value] = [found, null];
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  let shelfEnd;
  return { items, more, error, busy, reload: () => ask(true), loadMore: () => ask(false) };
}

/** The models of a kind as options; the service's default comes first. */
function Models({ of, value, onChange }) {
  const list = modelsOf(of);
  if (!list || list.length < 2) return null;
  return html`<${Field}
    label=${agentTexts.model}
    value=${value ?? ""}
    options=${[["", texts.models.standard], ...list.map(({ id }) => [id, id])]}
    onChange=${(event) => onChange(event.currentTarget.value || null)}
  />`;
}

// --- pictures

function Pictures() {
  const list = useMemo(() => shelf("picture"), []);
  const busy = useSignal(false),
    error = useSignal(null),
    viewed = useSignal(null);
  useEffect(() => {
    list.reload();
  }, []);
  const now = drawn.value,
    set = (what) => {
      drawn.value = { ...drawn.peek(), ...what };
    };
  const draw = async (event) => {
    event?.preventDefault();
    const { prompt, size, n, model } = drawn.peek();
    [busy.value, error.value] = [true, null];
    try {
      await api.media.draw({ prompt, size, n, response_format: "url", ...(model && { model }) });
      await list.reload();
      wallet.reload();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const again = (prompt) => {
    set({ prompt });
    viewed.value = null;
    draw();
  };
  const items = list.items.value;
  const each = usedModel("image", now.model)?.pricing?.micros_per_image;
  return html`
    <form class="card stack more-space" onSubmit=${draw}>
      <${Field}
        label=${t.prompt}
        rows="2"
        required
        maxlength=${limits.image.prompt.maxlength}
        value=${now.prompt}
        onInput=${(event) => set({ prompt: event.currentTarget.value })}
        error=${error.value?.param === "prompt" ? error.value.message : null}
      />
      <div class="options">
        <${Models} of="image" value=${now.model} onChange=${(model) => set({ model })} />
        <${Field}
          label=${t.size}
          value=${now.size}
          options=${SIZES.map((size) => [size, size.replace("x", " × ")])}
          onChange=${(event) => set({ size: event.currentTarget.value })}
        />
        <${Field}
          label=${t.number}
          value=${String(now.n)}
          options=${[1, 2, 3, 4].map((n) => [String(n), String(n)])}
          onChange=${(event) => set({ n: Number(event.currentTarget.value) })}
        />
      </div>
      ${
        error.value &&
        error.value.param !== "prompt" &&
        html`<${Failed} manual error=${error.value} retry=${draw} />`
      }
      <div class="actions">
        <${Button}
          kind="primary"
          type="submit"
          icon="image"
          busy=${busy.value}
          disabled=${!now.prompt.trim()}
        >${busy.value ? t.drawing : t.draw}<//>
        ${each > 0 && html`<p class="quiet small"><${Money} micros=${each * now.n} /></p>`}
      </div>
    </form>
    <h2>${t.gallery}</h2>
    ${
      items === undefined
        ? list.error.value
          ? html`<${Failed} error=${list.error.value} retry=${list.reload} />`
          : html`<${Loading} />`
        : !items.length
          ? html`<${Empty} icon="image" title=${t.noPictures} />`
          : html`
            <ul class="gallery">
              ${items.map(
                (one, at) =>
                  html`<li key=${one.id}>
                    <button
                      type="button"
                      class="gallery-item"
                      aria-label=${t.view(one.prompt ?? one.name)}
                      title=${one.prompt ?? one.name}
                      onClick=${() => {
                        viewed.value = at;
                      }}
                    ><${Thumb} id=${one.id} /></button>
                  </li>`,
              )}
            </ul>
            ${
              list.more.value &&
              html`<div class="more">
                <${Button} busy=${list.busy.value} onClick=${list.loadMore}>${texts.common.more}<//>
              </div>`
            }
          `
    }
    ${
      viewed.value !== null &&
      items?.[viewed.value] &&
      html`<${Viewer} items=${items} at=${viewed} onAgain=${again} />`
    }
  `;
}

function useUrl(id) {
  const url = useSignal(null);
  useEffect(() => {
    let made = null,
      left = false;
    url.value = null;
    pictureOf(id).then(
      (blob) => {
        if (!left) url.value = made = URL.createObjectURL(blob);
      },
      () => {},
    );
    return () => {
      left = true;
      if (made) URL.revokeObjectURL(made);
    };
  }, [id]);
  return url.value;
}

function Thumb({ id }) {
  const url = useUrl(id);
  return url && html`<img src=${url} alt="" />`;
}

function Viewer({ items, at, onAgain }) {
  const one = items[at.value],
    url = useUrl(one.id),
    { prompt } = one;
  const move = (by) => {
    at.value = Math.max(0, Math.min(items.length - 1, at.value + by));
  };
  const onKey = (event) => move(stepOf(event));
  return html`<${Dialog}
    title=${prompt ?? one.name}
    wide
    onClose=${() => {
      at.value = null;
    }}
  >
    <div class="viewer" onKeyDown=${onKey}>
      ${url ? html`<img src=${url} alt=${prompt ?? one.name} />` : html`<${Loading} />`}
      <div class="actions">
        <${IconButton} icon="back" label=${t.previous} disabled=${at.value === 0} onClick=${() => move(-1)} />
        <${Button}
          icon="download"
          onClick=${() => saveArtifact(one).catch((error) => toast(error.message, { kind: "bad" }))}
        >${texts.common.download}<//>
        ${prompt && html`<${Button} icon="retry" onClick=${() => onAgain(prompt)}>${agentTexts.again}<//>`}
        <${IconButton}
          class="turned"
          icon="back"
          label=${t.next}
          disabled=${at.value === items.length - 1}
          onClick=${() => move(1)}
        />
      </div>
    </div>
  <//>`;
}

// --- sound

function Sounds() {
  const list = useMemo(() => shelf("sound"), []);
  const busy = useSignal(false),
    error = useSignal(null),
    made = useSignal(null),
    id = useId();
  useEffect(() => {
    list.reload();
  }, []);
  useEffect(
    () => () => {
      if (made.peek()) URL.revokeObjectURL(made.peek().url);
    },
    [],
  );
  const now = said.value,
    set = (what) => {
      said.value = { ...said.peek(), ...what };
    };
  const speak = async (event) => {
    event?.preventDefault();
    const { text, voice, speed, cap, model } = said.peek();
    [busy.value, error.value] = [true, null];
    try {
      const spoken = await api.media.speak({
        input: text,
        voice,
        speed,
        tts_max_tokens: cap,
        ...(model && { model }),
      });
      if (made.peek()) URL.revokeObjectURL(made.peek().url);
      made.value = { ...spoken, text, url: URL.createObjectURL(spoken.blob), kept: false };
      wallet.reload();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const nameOf = ({ text, blob }) =>
    `${
      text
        .slice(0, 60)
        .replace(/[^\p{L}\p{N}]+/gu, "-")
        .replace(/^-|-$/g, "") || "speech"
    }.${blob.type.includes("mpeg") ? "mp3" : blob.type.split("/")[1]?.replace("x-", "") || "wav"}`;
  const keep = async () => {
    const one = made.peek();
    try {
      const artifact = await api.artifacts.create({
        name: nameOf(one),
        content: "",
        content_type: one.blob.type,
      });
      await api.artifacts.replaceContent(artifact.id, one.blob, { type: one.blob.type });
      made.value = { ...one, kept: true };
      list.reload();
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  const each = usedModel("speech", now.model)?.pricing?.micros_per_thousand_audio_tokens;
  const words = now.text.trim() ? now.text.trim().split(/\s+/).length : 0;
  const costOf = (tokens) => estimate((Math.min(tokens, now.cap) * each) / 1000);
  const minutes = (tokens) => Math.round((tokens / 4096) * 3);
  const items = list.items.value;
  return html`
    <form class="card stack more-space" onSubmit=${speak}>
      <${Field}
        label=${t.text}
        rows="5"
        required
        value=${now.text}
        onInput=${(event) => set({ text: event.currentTarget.value })}
        error=${error.value?.param === "input" ? error.value.message : null}
      />
      <div class="options">
        <${Models} of="speech" value=${now.model} onChange=${(model) => set({ model })} />
        <${Field}
          label=${t.voice}
          list=${`${id}-voices`}
          value=${now.voice}
          onInput=${(event) => set({ voice: event.currentTarget.value })}
          error=${error.value?.param === "voice" ? error.value.message : null}
        />
        <${Field}
          label=${t.speed}
          value=${String(now.speed)}
          options=${[0.5, 0.75, 1, 1.25, 1.5, 2].map((speed) => [String(speed), `${speed} ×`])}
          onChange=${(event) => set({ speed: Number(event.currentTarget.value) })}
        />
        <${Field}
          label=${t.cap}
          value=${String(now.cap)}
          options=${CAPS.map((cap) => [
            String(cap),
            t.capChoice(minutes(cap), Math.round((cap * WORDS_PER_TOKEN) / 100) * 100),
          ])}
          onChange=${(event) => set({ cap: Number(event.currentTarget.value) })}
        />
      </div>
      <datalist id=${`${id}-voices`}>${VOICES.map((voice) => html`<option value=${voice} />`)}</datalist>
      ${
        error.value &&
        !["input", "voice"].includes(error.value.param) &&
        html`<${Failed} manual error=${error.value} retry=${speak} />`
      }
      <div class="actions">
        <${Button} kind="primary" type="submit" icon="sound" busy=${busy.value} disabled=${!now.text.trim()}>
          ${busy.value ? t.speaking : t.speak}
        <//>
        ${
          each > 0 &&
          words > 0 &&
          html`<p class="quiet small">
            ${texts.estimate.cost(costOf(words / WORDS_PER_TOKEN / now.speed), costOf(now.cap))}
          </p>`
        }
      </div>
    </form>
    ${
      made.value &&
      html`<section class="card stack more-space" aria-label=${t.kinds.sound}>
        <audio controls src=${made.value.url} aria-label=${made.value.text.slice(0, 80)}></audio>
        <p class="quiet small">${t.spoken(duration(made.value.seconds * 1000))}</p>
        ${
          made.value.truncated &&
          html`<${Notice} kind="warn" icon="warning">${t.truncated(duration(made.value.seconds * 1000))}<//>`
        }
        <div class="actions">
          <${Button} icon="download" onClick=${() => saveFile(made.value.blob, nameOf(made.value))}>
            ${texts.common.download}
          <//>
          <${Button} icon="artifacts" disabled=${made.value.kept} onClick=${keep}>
            ${made.value.kept ? t.kept : t.keep}
          <//>
        </div>
      </section>`
    }
    <h2>${t.sounds}</h2>
    ${
      items === undefined
        ? list.error.value
          ? html`<${Failed} error=${list.error.value} retry=${list.reload} />`
          : html`<${Loading} />`
        : !items.length
          ? html`<${Empty} icon="sound" title=${t.noSounds} />`
          : html`
            <div class="stack">${items.map((one) => html`<${ArtifactCard} key=${one.id} of=${one} />`)}</div>
            ${
              list.more.value &&
              html`<div class="more">
                <${Button} busy=${list.busy.value} onClick=${list.loadMore}>${texts.common.more}<//>
              </div>`
            }
          `
    }
  `;
}
