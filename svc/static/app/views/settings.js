// Settings: name, sign-in, default model, instructions, memory, theme, export, import, account deletion.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, rememberUser, session } from "../api.js";
import { Button, Failed, Field, Notice, Page, Progress, Resource, Switch, toast } from "../components.js";
import { bytes, date, modelName } from "../format.js";
import { html } from "../html.js";
import { LanguageField } from "../language.js";
import { Lazy } from "../lazy.js";
import { limits } from "../limits.js";
import { link } from "../router.js";
import { SignInMethods } from "../sign-in-methods.js";
import { me, models, modelsOf, settings, theme } from "../state.js";
import { texts } from "../texts/en/settings.js";

const t = texts.settings;
const leaving = signal(false);

export default function Settings() {
  useEffect(() => {
    models.ensure();
    if (!me.busy.peek()) me.reload();
  }, []);
  useEffect(() => {
    const { email } = me.data.value ?? {}; // it may have been changed elsewhere
    if (email && email !== session.peek().user.email) rememberUser({ ...session.peek().user, email });
  }, [me.data.value]);
  return html`<${Page} title=${texts.views.settings}>
    <${Resource} of=${me}>
      ${(user) => html`<${Profile} user=${user} /><${SignInMethods} user=${user} />`}
    <//>
    <h2>${t.chat}</h2>
    <${Resource} of=${settings}>${(now) => html`<${Chat} now=${now} />`}<//>
    <h2>${t.look}</h2>
    <div class="card stack">
      <${Field}
        label=${texts.shell.theme}
        value=${theme.value}
        options=${Object.entries(texts.shell.themes)}
        onChange=${(event) => {
          theme.value = event.currentTarget.value;
        }}
      />
      <${Resource} of=${settings}>${(now) => html`<${Language} chosen=${now.language} />`}<//>
    </div>
    <h2>${t.tools}</h2>
    <div class="card section-row">
      <p class="grow">${t.toolsText}</p>
      <${Button} icon="tools" href=${link("tool-servers")}>${texts.views["tool-servers"]}<//>
    </div>
    <h2>${t.data}</h2><${Export} />
    <div class="card section-row">
      <p class="grow">${t.memoryText}</p>
      <${Button} icon="memory" href=${link("memory")}>${texts.views.memory}<//>
    </div>
    <div class="card section-row">
      <p class="grow">${t.importText}</p>
      <${Button} icon="upload" href=${link("imports")}>${texts.views.imports}<//>
    </div>
    <div class="card section-row">
      <p class="grow">${t.sharesText}</p>
      <${Button} icon="external" href=${link("shares")}>${texts.views.shares}<//>
    </div>
    ${
      settings.data.value?.deletion_enabled &&
      html`<h2>${t.end}</h2>
    <div class="card section-row">
      <p class="grow">${t.endText}</p>
      <${Button}
        kind="danger"
        onClick=${() => {
          leaving.value = true;
        }}
      >${t.endAction}<//>
    </div>`
    }
    ${
      leaving.value &&
      html`<${Lazy}
        quiet
        name="delete-account"
        from=${() => import("../delete-account.js")}
        opened=${leaving}
      />`
    }
  <//>`;
}

function Profile({ user }) {
  const name = useSignal(user.name ?? ""),
    busy = useSignal(false),
    error = useSignal(null);
  const save = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      const changed = await api.user.change({ name: name.value.trim() || null });
      me.set(changed);
      rememberUser({ ...session.peek().user, name: changed.name });
      toast(texts.common.saved, { kind: "good" });
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const sendMail = async () => {
    try {
      await api.user.verifyEmail();
      toast(t.verificationSent, { seconds: 8 });
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  return html`<form class="card stack" onSubmit=${save}>
    <dl class="account-facts">
      <div><dt>${texts.wallet.tier}</dt><dd>${texts.wallet.tiers[user.tier]}</dd></div>
      <div><dt>${t.since}</dt><dd><time datetime=${user.created_at}>${date(user.created_at)}</time></dd></div>
    </dl>
    ${
      user.email_verified === false &&
      settings.data.value &&
      (settings.data.value.mail_enabled
        ? html`<${Notice}
          kind="warn"
          icon="warning"
          action=${html`<${Button} small onClick=${sendMail}>${t.sendMail}<//>`}
        >${t.unverified}<//>`
        : html`<p class="hint">${t.noMail}</p>`)
    }
    <${Field}
      label=${texts.signIn.name}
      maxlength=${limits.sign_up.name.maxlength}
      autocomplete="name"
      value=${name.value}
      onInput=${(event) => {
        name.value = event.currentTarget.value;
      }}
      error=${error.value?.param === "name" ? error.value.message : null}
    />
    ${error.value && error.value.param !== "name" && html`<${Failed} error=${error.value} />`}
    <div class="actions">
      <${Button}
        kind="primary"
        type="submit"
        busy=${busy.value}
        disabled=${name.value.trim() === (user.name ?? "")}
      >${texts.common.save}<//>
    </div>
  </form>`;
}

function Chat({ now }) {
  const change = async (what) => {
    settings.set({ ...now, ...what });
    try {
      settings.set(await api.user.changeSettings(what));
      toast(texts.common.saved, { kind: "good" });
    } catch (problem) {
      settings.set(now);
      toast(problem.message, { kind: "bad" });
    }
  };
  const known = modelsOf("chat")?.map(({ id }) => id) ?? [];
  const ids = !now.default_model || known.includes(now.default_model) ? known : [now.default_model, ...known];
  return html`<div class="card stack">
    <${Field}
      label=${t.defaultModel}
      hint=${t.defaultModelHint}
      value=${now.default_model ?? ""}
      options=${[["", t.operatorsModel], ...ids.map((id) => [id, modelName(id)])]}
      onChange=${(event) => change({ default_model: event.currentTarget.value || null })}
    />
    <${Instructions}
      text=${now.instructions ?? ""}
      onSave=${(text) => change({ instructions: text || null })}
    />
    <${Switch}
      label=${t.memory}
      hint=${t.memoryHint}
      checked=${now.memory_enabled}
      onChange=${(on) => change({ memory_enabled: on })}
    />
    <${Field}
      label=${t.titles}
      hint=${t.titlesHint}
      value=${now.generate_titles}
      options=${Object.entries(t.titleChoices)}
      onChange=${(event) => change({ generate_titles: event.currentTarget.value })}
    />
  </div>`;
}

function Language({ chosen }) {
  const choose = async (language) => {
    try {
      settings.set(await api.user.changeSettings({ language })); // language.js draws the page again
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  return html`<${LanguageField} hint=${t.languageHint} chosen=${chosen} onChoose=${choose} />`;
}

function Instructions({ text, onSave }) {
  const value = useSignal(text);
  return html`<form
    class="stack"
    onSubmit=${(event) => {
      event.preventDefault();
      onSave(value.peek().trim());
    }}
  >
    <${Field}
      label=${t.instructions}
      hint=${t.instructionsHint}
      rows="4"
      maxlength=${limits.settings.instructions.maxlength}
      value=${value.value}
      onInput=${(event) => {
        value.value = event.currentTarget.value;
      }}
    />
    <div class="actions">
      <${Button} type="submit" disabled=${value.value.trim() === text}>${t.saveInstructions}<//>
    </div>
  </form>`;
}

function Export() {
  const progress = useSignal(null),
    error = useSignal(null);
  const save = async () => {
    [progress.value, error.value] = [0, null];
    try {
      const blob = await api.user.exportAll({
        onProgress: (done) => {
          progress.value = done;
        },
      });
      const { saveFile } = await import("../files.js");
      saveFile(blob, `svc-export-${new Date().toISOString().slice(0, 10)}.zip`);
    } catch (problem) {
      error.value = problem;
    }
    progress.value = null;
  };
  return html`<div class="card stack">
    <p>${t.exportText}</p>
    <${Retention} days=${settings.data.value?.retention} />
    ${progress.value !== null && html`<${Progress} label=${t.exporting(bytes(progress.value))} />`}
    ${error.value && html`<${Failed} manual error=${error.value} retry=${save} />`}
    <div class="actions">
      <${Button} icon="download" busy=${progress.value !== null} onClick=${save}>${t.exportAction}<//>
    </div>
  </div>`;
}

/** When the service deletes what nobody uses, if it does. */
function Retention({ days }) {
  const parts = Object.entries(days ?? {}).filter(([, n]) => n !== null);
  if (!parts.length) return null;
  return html`<ul class="quiet small">
    ${parts.map(([what, n]) => html`<li>${t.retention[what](n)}</li>`)}
  </ul>`;
}
