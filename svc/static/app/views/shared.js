// A shared conversation, as everyone reads it who has the link: a frozen copy without an account.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { SourceList } from "../answer-tools.js";
import { api, session } from "../api.js";
import { Button, Failed, Resource, toast } from "../components.js";
import { split } from "../content.js";
import { date, modelName } from "../format.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { Sources } from "../links.js";
import { Markdown } from "../markdown.js";
import { FarMessage, remsOf } from "../message.js";
import { go, link } from "../router.js";
import { preview, resource } from "../state.js";
import { TextBlocks } from "../text-blocks.js";
import { texts } from "../texts/en/share.js";
import { useNear } from "../viewport.js";

const t = texts.share;
const AT_ONCE = 6; // messages at the start; others are plain text until they are near the screen
const PICTURE = /!\[[^\]]*\]\(\/artifacts\/art_\w+\/content\)/g;

export default function Shared({ path: [token] }) {
  const shared = useMemo(() => resource(() => api.shared.show(token)), [token]);
  useEffect(() => {
    const robots = Object.assign(document.createElement("meta"), { name: "robots", content: "noindex" });
    document.head.append(robots);
    return () => robots.remove();
  }, []);
  const title = shared.data.value && (shared.data.value.title ?? t.untitled);
  useEffect(() => {
    if (title) document.title = `${title} · ${texts.name}`;
  }, [title]);
  return html`<main class="main shared" id="content" tabindex="-1">
    <header class="shared-head">
      <a class="brand" href=${link("chat")}>
        <span class="brand-mark" aria-hidden="true"><i></i><i></i><i></i></span>${texts.name}
      </a>
      ${shared.data.value && html`<${GoOn} shared=${shared.data.value} token=${token} />`}
    </header>
    ${
      shared.error.value?.status === 404
        ? html`<div class="column">
          <h1 class="hidden-text">${texts.views.shared}</h1><${Failed} error=${{ message: t.gone }} />
        </div>`
        : html`<${Resource} of=${shared}>${(data) => html`<${Copy} of=${data} token=${token} />`}<//>`
    }
  </main>
  ${preview.value && html`<${preview.value.Panel} ...${preview.value} />`}`;
}

/** Continue as the signed-in account: a new conversation with the texts of the copy. */
function GoOn({ shared, token }) {
  const busy = useSignal(false);
  if (!session.value)
    return html`<${Button} small href=${link("shared", token, { signin: "1" })}>${t.signIn}<//>`;
  const copy = async () => {
    busy.value = true;
    let made = null;
    try {
      made = await api.conversations.create(shared.title ? { title: shared.title } : {});
      for (const { role, content } of shared.messages) {
        const text = content.replace(PICTURE, "").trim();
        if (text) await api.conversations.addMessage(made.id, { role, content: text });
      }
      go(link("chat", made.id));
    } catch (error) {
      toast(error.message, { kind: "bad" });
      if (made) api.conversations.remove(made.id).catch(() => {});
    }
    busy.value = false;
  };
  return html`<${Button} small icon="chat" busy=${busy.value} onClick=${copy}>${t.goOn}<//>`;
}

function Copy({ of: { title, created_at: at, messages }, token }) {
  return html`<div class="column">
    <h1 dir="auto">${title ?? t.untitled}</h1>
    <p class="quiet">${t.readOnly(date(at))}</p>
    ${messages.map((message, place) => html`<${Message} key=${place} ...${{ message, place, token }} />`)}
  </div>`;
}

function Message({ message, place, token }) {
  const { near, box } = useNear(place < AT_ONCE);
  const style = { containIntrinsicBlockSize: `auto ${remsOf(message).toFixed(1)}rem` };
  return html`<div class="message-group" style=${style}>
    ${
      !near
        ? html`<${FarMessage} message=${message} box=${box} />`
        : message.role === "user"
          ? html`<${Question} content=${message.content} />`
          : html`<${Answer} message=${message} token=${token} />`
    }
  </div>`;
}

/** Pictures that were attached are not shared: their names stand for them. */
function Question({ content }) {
  const { text, files, images } = useMemo(() => split(content), [content]);
  return html`<article class="message said-user">
    <h2 class="hidden-text">${t.you}</h2>
    <div class="bubble">
      ${images.map(
        ({ name }) => html`<p class="picture-gone"><${Icon} name="image" size=${18} />${name}</p>`,
      )}
      ${files.map(
        (file) => html`<details class="file">
          <summary class="file-chip">
            <${Icon} name="artifacts" size=${18} /><span class="file-name" dir="auto">${file.name}</span>
          </summary>
          <div class="artifact-text" tabindex="0" role="region" aria-label=${file.name} dir="auto">
            <${TextBlocks} text=${file.text} />
          </div>
        </details>`,
      )}
      ${text && html`<p class="said" dir="auto"><${TextBlocks} text=${text} /></p>`}
    </div>
  </article>`;
}

function Answer({ message: { content, model, status, pictures, sources }, token }) {
  const text = content.replace(PICTURE, "");
  return html`<article class="message said-assistant">
    <h2 class="hidden-text">${t.assistant}</h2>
    <${Sources.Provider} value=${sources}><${Markdown} text=${text} /><//>
    ${pictures.map(
      (id) => html`<p class="picture">
        <img src=${api.shared.picture(token, id)} alt=${t.picture} loading="lazy" />
      </p>`,
    )}
    <${SourceList} text=${content} sources=${sources} />
    ${status !== "complete" && html`<p class="ending">${t.cut}</p>`}
    ${model && html`<p class="facts"><span class="fact-model">${modelName(model)}</span></p>`}
  </article>`;
}
