// The client of the service's API: session, paths, errors, lists, uploads and event streams.
// `api.<resource>.<verb>(…)` returns the JSON of the response or throws an ApiError.
import { effect, signal } from "@preact/signals";
import { loadSentences, sentenceOf } from "./sentences.js";
import { texts } from "./texts.js";

const SESSION = "svc.session";
const OURS = "svc.";
const KEPT_AT_SIGN_OUT = new Set(["svc.theme"]);

/** The stored session: `{token, expiresAt (ms), user}`, or null. */
export const session = signal(stored());
/** Whether the session has expired and the password dialog is open. */
export const expired = signal(false);
/** Whether the last request reached the service. */
export const online = signal(navigator.onLine);

export class ApiError extends Error {
  /** `status` 0: no response. `retryAfter`: seconds, or null. */
  constructor(status, { message, code = null, type = null, param = null, retry_after: retryAfter = null }) {
    super(sentenceOf({ code, message }));
    this.detail = message;
    this.status = status;
    this.code = code;
    this.type = type;
    this.param = param;
    this.retryAfter = retryAfter;
    this.request_id = null; // of a failure of the service or a model server
    this.isStored = false; // whether a refused question is stored nevertheless, with a failed answer
  }
}

/** Whether the user or the page aborted the request. */
export const wasAborted = (error) => error?.name === "AbortError";

function stored() {
  try {
    const value = JSON.parse(localStorage.getItem(SESSION));
    return value?.token && value.user?.id ? value : null;
  } catch {
    return null;
  }
}

/** Store the session of a sign-in. A session of another account starts with an empty page. */
export function signedIn({ access_token: token, expires_in: seconds, user }) {
  const before = session.peek();
  if (before && before.user.id !== user.id) forget();
  const value = { token, expiresAt: Date.now() + seconds * 1000, user };
  localStorage.setItem(SESSION, JSON.stringify(value));
  expired.value = false;
  session.value = value;
  if (before && before.user.id !== user.id) location.replace("/");
}

/** Update the stored user, such as the name. */
export function rememberUser(user) {
  const value = { ...session.peek(), user };
  localStorage.setItem(SESSION, JSON.stringify(value));
  session.value = value;
}

function forget() {
  for (const name of Object.keys(localStorage)) {
    if (name.startsWith(OURS) && !KEPT_AT_SIGN_OUT.has(name)) localStorage.removeItem(name);
  }
  sessionStorage.clear();
}

/** Sign out in all tabs: a token cannot be revoked, so the token and all drafts are deleted. */
export async function signOut() {
  const token = session.peek()?.token;
  // The response clears the checkout cookie. Offline, only the token is deleted.
  if (token)
    await fetch("/auth/logout", { method: "POST", headers: { authorization: `Bearer ${token}` } }).catch(
      () => {},
    );
  forget();
  location.replace("/");
}

addEventListener("storage", ({ key }) => {
  if (key !== SESSION && key !== null) return;
  const now = stored();
  if (now?.user.id !== session.peek()?.user.id) return location.replace("/");
  expired.value = false;
  session.value = now;
});
addEventListener("online", () => {
  online.value = true;
});
let offlineSince = -Infinity; // time of the browser's last offline event
addEventListener("offline", () => {
  [online.value, offlineSince] = [false, performance.now()];
});

/**
 * Resolve when there is a session with a token other than `old`.
 * @returns {Promise<void>}
 */
function newSession(old) {
  return new Promise((resolve) => {
    const stop = effect(() => {
      if (!session.value || session.value.token === old) return;
      resolve();
      queueMicrotask(() => stop());
    });
  });
}

/**
 * `body`: JSON, a Blob, a form or URLSearchParams. `open`: without the session's token.
 * @typedef {{body?: any, headers?: Record<string, string>, open?: boolean, keepalive?: boolean,
 *   signal?: AbortSignal}} Options
 * @typedef {{onProgress?: (bytes: number, allBytes: number | null) => void, type?: string,
 *   headers?: Record<string, string>, signal?: AbortSignal}} Transfer
 */

/**
 * Send a request and return the response of any status. An expired session is renewed first, then the
 * request is repeated.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Response>}
 */
async function send(method, path, { body, headers = {}, signal: abort, keepalive, open = false } = {}) {
  for (;;) {
    const token = open ? null : session.peek()?.token;
    const isJson =
      body !== undefined && ![Blob, FormData, URLSearchParams].some((kind) => body instanceof kind);
    const began = performance.now();
    let answer;
    try {
      answer = await fetch(path, {
        method,
        headers: {
          ...(token && { authorization: `Bearer ${token}` }),
          ...(isJson && { "content-type": "application/json" }),
          ...headers,
        },
        body: isJson ? JSON.stringify(body) : body,
        signal: abort,
        keepalive,
        credentials: "same-origin",
      });
    } catch (error) {
      if (wasAborted(error)) throw error;
      throw unreachable();
    }
    if (began > offlineSince) online.value = true;
    if (answer.status !== 401 || !token) return answer;
    const problem = await problemOf(answer);
    if (problem.code !== "session_expired") {
      // The account is deleted, or the service has new secrets. A wrong password of a form is none of these.
      if (problem.code !== "invalid_credentials" && session.peek()?.token === token) signOut();
      throw problem;
    }
    if (session.peek()?.token === token) expired.value = true;
    await newSession(token);
  }
}

function unreachable() {
  online.value = navigator.onLine;
  return new ApiError(0, { message: texts.common.unreachable, code: "unreachable" });
}

/**
 * @param {Response} answer
 * @returns {Promise<ApiError>}
 */
async function problemOf(answer) {
  await loadSentences();
  try {
    const error = new ApiError(answer.status, (await answer.json()).error);
    if (answer.status >= 500) error.request_id = answer.headers.get("x-request-id");
    error.isStored = answer.headers.has("x-service-conversation");
    return error;
  } catch {
    return new ApiError(answer.status, {
      message: texts.common.status(answer.status),
      code: "unknown",
    });
  }
}

/** @type {typeof send} */
async function checked(method, path, options) {
  const answer = await send(method, path, options);
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

/**
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
async function json(method, path, options) {
  return jsonOf(await checked(method, path, options));
}

/**
 * @param {Response} answer
 * @returns {Promise<any>}
 */
async function jsonOf(answer) {
  try {
    return answer.status === 204 ? null : await answer.json();
  } catch (error) {
    if (wasAborted(error)) throw error;
    throw unreachable();
  }
}

const segment = encodeURIComponent;
/** Append the values that are neither null nor empty to `path`. */
function query(path, values = {}) {
  const given = Object.entries(values).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}
const get = (path, values, options) => json("GET", query(path, values), options);
const post = (path, body, options) => json("POST", path, { ...options, body });
const patch = (path, body) => json("PATCH", path, { body });
const put = (path, body) => json("PUT", path, { body });
const remove = (path, options) => json("DELETE", path, options);

/**
 * Yield the `data:` lines of a response. Throws an ApiError `connection_lost` if the response is cut off.
 */
async function* dataLines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) yield line.slice(6);
    }
  } catch (error) {
    if (wasAborted(error)) throw error;
    throw connectionLost();
  } finally {
    reader.cancel().catch(() => {});
  }
}

const connectionLost = () =>
  new ApiError(0, { message: texts.common.connectionLost, code: "connection_lost" });

/**
 * Yield the chunks of an answer. A mid-stream error is thrown as an ApiError with status 200.
 */
async function* chunksOf(answer) {
  for await (const data of dataLines(answer)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) {
      await loadSentences();
      throw new ApiError(200, chunk.error);
    }
    yield chunk;
  }
  throw connectionLost();
}

const unanswered = new Map(); // requests that may have been answered without this page -> their keys
const MOST_UNANSWERED = 8;

/**
 * Return the headers of a request that may cost something, and a function for its end. If the page sends the
 * request again, after a second click or a lost connection, it has the same key: it is answered and
 * paid once.
 * @param {string} path
 * @param {object} body
 * @param {Record<string, string>} [headers]
 */
function keyed(path, body, headers) {
  const name = JSON.stringify([path, body, headers]);
  const key = unanswered.get(name) ?? crypto.randomUUID();
  unanswered.set(name, key);
  if (unanswered.size > MOST_UNANSWERED) unanswered.delete(unanswered.keys().next().value);
  const end = (error) => {
    if (!error || error.status) unanswered.delete(name);
  };
  return { headers: { ...headers, "idempotency-key": key }, end };
}

/**
 * Return what `read` makes of the response to such a request.
 * @template T
 * @param {string} path
 * @param {object} body
 * @param {(answer: Response) => Promise<T>} read
 * @param {Options} [options]
 */
async function once(path, body, read, { signal: abort } = {}) {
  const { headers, end } = keyed(path, body);
  try {
    const made = await read(await checked("POST", path, { body, headers, signal: abort }));
    end();
    return made;
  } catch (error) {
    end(error);
    throw error;
  }
}

/** Yield the chunks of a chat completion. `onOpen` receives the headers. */
async function* chat(body, { signal: abort, headers: own, onOpen }) {
  const path = "/v1/chat/completions",
    asked = { ...body, stream: true },
    // The answer to a key is stored, and nothing of a temporary chat is.
    { headers, end } = own["x-service-temporary"] ? { headers: own, end() {} } : keyed(path, asked, own);
  try {
    const answer = await checked("POST", path, { body: asked, headers, signal: abort });
    onOpen?.(answer.headers);
    yield* chunksOf(answer);
    end();
  } catch (error) {
    end(error);
    throw error;
  }
}

const TERMINAL = new Set(["final", "error", "stopped"]);

/**
 * Yield the events of an agent run up to `final`, `error` or `stopped`. Throws `connection_lost` without
 * them.
 * @param {object} body
 * @param {Options} [options]
 */
async function* runAgent(body, { signal: abort } = {}) {
  const answer = await checked("POST", "/v1/agents/run", { body, signal: abort });
  for await (const data of dataLines(answer)) {
    const event = JSON.parse(data);
    yield event;
    if (TERMINAL.has(event.type)) return;
  }
  throw connectionLost();
}

/**
 * Upload a Blob with progress, which fetch does not report.
 * @param {string} method
 * @param {string} path
 * @param {Blob} blob
 * @param {Transfer} [options]
 * @returns {Promise<any>}
 */
function upload(method, path, blob, { onProgress, signal: abort, type = blob.type } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, path);
    request.setRequestHeader("authorization", `Bearer ${session.peek()?.token}`);
    request.setRequestHeader("content-type", type || "application/octet-stream");
    request.upload.onprogress = ({ loaded, total }) => onProgress?.(loaded, total);
    request.onerror = () => reject(unreachable());
    request.onabort = () => reject(new DOMException("", "AbortError"));
    request.onload = async () => {
      let value = null;
      try {
        value = JSON.parse(request.responseText);
      } catch {
        /* an answer without a body */
      }
      if (request.status < 300) resolve(value);
      else {
        await loadSentences();
        reject(
          new ApiError(request.status, value?.error ?? { message: texts.common.status(request.status) }),
        );
      }
    };
    abort?.addEventListener("abort", () => request.abort());
    request.send(blob);
  });
}

/**
 * Download a response as a Blob, with progress.
 * @param {string} path
 * @param {Transfer} [options]
 */
async function download(path, { onProgress, headers, signal: abort } = {}) {
  const answer = await checked("GET", path, { headers, signal: abort });
  const all = Number(answer.headers.get("content-length")) || null;
  const parts = [];
  let bytes = 0;
  const reader = answer.body.getReader();
  try {
    for (let turn = await reader.read(); !turn.done; turn = await reader.read()) {
      parts.push(turn.value);
      bytes += turn.value.length;
      onProgress?.(bytes, all);
    }
  } catch (error) {
    if (wasAborted(error)) throw error;
    throw connectionLost();
  }
  return new Blob(parts, { type: answer.headers.get("content-type") ?? "" });
}

/**
 * Audio.
 * @param {object} body
 * @param {Options} [options]
 */
const speak = (body, options) =>
  once(
    "/v1/audio/generate",
    body,
    async (answer) => ({
      blob: await answer.blob(),
      seconds: Number(answer.headers.get("x-audio-seconds")),
      truncated: answer.headers.get("x-audio-truncated") === "true",
    }),
    options,
  );

export { download, get, patch, post, put, remove };

const open = { open: true };
const crud = (path) => ({
  list: (values) => get(path, values),
  create: (body) => post(path, body),
  show: (id) => get(`${path}/${segment(id)}`),
  change: (id, body) => patch(`${path}/${segment(id)}`, body),
  remove: (id, options) => remove(`${path}/${segment(id)}`, options),
});

/** @type {Interface} */
export const api = {
  auth: {
    signUp: (body) => post("/auth/signup", body, open),
    signIn: (body) => post("/auth/login", body, open),
    providers: async () => (await get("/auth/oauth", {}, open)).data,
    changeCode: (code) => post("/auth/oauth/session", { code }, open),
    resetPassword: (email) => post("/auth/password-reset", { email }, open),
    verifyEmail: (token) => post("/auth/verify-email", { token }, open),
  },
  user: {
    me: () => get("/user/me"),
    change: (body) => patch("/user/me", body),
    remove: (body) => remove("/user/me", { body }),
    settings: () => get("/user/settings"),
    changeSettings: (body) => patch("/user/settings", body),
    changePassword: (body) => post("/user/password", body),
    identities: () => get("/user/identities"),
    linkIdentity: (provider) => post(`/user/identities/${segment(provider)}`, {}),
    unlinkIdentity: (id) => remove(`/user/identities/${segment(id)}`),
    verifyEmail: () => post("/user/verify-email", {}),
    exportAll: (options) => download("/user/export", options),
  },
  memory: {
    list: (values) => get("/user/memory", values),
    forget: (id) => remove(`/user/memory/${segment(id)}`),
    remember: (id) => post(`/user/memory/${segment(id)}`, {}),
  },
  imports: {
    list: (values) => get("/user/import", values),
    show: (id) => get(`/user/import/${segment(id)}`),
    create: (file, options) => upload("POST", "/user/import", file, options),
    undo: (id) => remove(`/user/import/${segment(id)}`),
  },
  keys: {
    list: () => get("/user/api-keys"),
    create: (body) => post("/user/api-keys", body),
    change: (id, body) => patch(`/user/api-keys/${segment(id)}`, body),
    remove: (id) => remove(`/user/api-keys/${segment(id)}`),
  },
  providers: {
    ...crud("/user/providers"),
    test: (id) => post(`/user/providers/${segment(id)}/test`, {}),
  },
  toolServers: {
    ...crud("/user/tool-servers"),
    test: (id) => post(`/user/tool-servers/${segment(id)}/test`, {}),
  },
  tools: { list: async () => (await get("/v1/tools")).data },
  projects: {
    ...crud("/projects"),
    files: async (id) => (await get(`/projects/${segment(id)}/files`)).data,
    addFile: (id, artifactId) => post(`/projects/${segment(id)}/files`, { artifact_id: artifactId }),
    removeFile: (id, artifactId) => remove(`/projects/${segment(id)}/files/${segment(artifactId)}`),
  },
  conversations: {
    ...crud("/conversations"),
    messages: (id, values, options) => get(`/conversations/${segment(id)}/messages`, values, options),
    share: (id, body) => post(`/conversations/${segment(id)}/shares`, body),
    fork: (id, messageId) => post(`/conversations/${segment(id)}/fork`, { message_id: messageId }),
    versions: (id, messageId, values) =>
      get(`/conversations/${segment(id)}/messages/${segment(messageId)}/versions`, values),
    exported: (id) => download(`/conversations/${segment(id)}/export`),
    addMessage: (id, body) => post(`/conversations/${segment(id)}/messages`, body),
    stop: (id) => post(`/conversations/${segment(id)}/stop`, {}),
    summarize: (id) => once(`/conversations/${segment(id)}/summarize`, {}, jsonOf),
    async *approve(id, calls, { onOpen, ...options }) {
      const path = `/conversations/${segment(id)}/approve`,
        headers = { "x-service-continue": "true" };
      const answer = await checked("POST", path, { ...options, headers, body: { calls } });
      onOpen();
      yield* chunksOf(answer);
    },
    async *stream(id, options) {
      yield* chunksOf(await checked("GET", `/conversations/${segment(id)}/stream`, options));
    },
  },
  shares: crud("/user/shares"),
  shared: {
    show: (token) => json("GET", `/shared/${segment(token)}`, { open: true }),
    picture: (token, id) => `/shared/${segment(token)}/pictures/${segment(id)}`,
  },
  artifacts: {
    ...crud("/artifacts"),
    content: (id, options) => download(`/artifacts/${segment(id)}/content`, options),
    passages: (id, values) => get(`/artifacts/${segment(id)}/passages`, values),
    text: async (id, options) => {
      const answer = await checked("GET", `/artifacts/${segment(id)}/text`, options);
      return {
        text: await answer.text(),
        truncated: answer.headers.get("x-text-truncated") === "true",
      };
    },
    replaceContent: (id, blob, options) => upload("PUT", `/artifacts/${segment(id)}/content`, blob, options),
  },
  agents: {
    run: runAgent,
    list: (values) => get("/v1/agents/runs", values),
    show: (id) => get(`/v1/agents/runs/${segment(id)}`),
    stop: (id) => post(`/v1/agents/runs/${segment(id)}/stop`, {}),
  },
  models: {
    show: (id) => get(`/v1/models/${segment(id)}`),
    list: async () => (await get("/v1/models")).data.filter((model) => !model.alias_of),
  },
  media: {
    draw: (body, options) => once("/v1/images/generations", body, jsonOf, options),
    speak,
    transcribe: (form, options) => json("POST", "/v1/audio/transcriptions", { body: form, ...options }),
  },
  billing: {
    account: () => get("/billing/account"),
    ledger: (values) => get("/billing/ledger", values),
    usage: (values) => get("/billing/usage", values),
  },
  support: {
    list: (values) => get("/support/conversations", values),
    create: (body) => post("/support/conversations", body),
    show: (id) => get(`/support/conversations/${segment(id)}`),
    addMessage: (id, content) => post(`/support/conversations/${segment(id)}/messages`, { content }),
    close: (id) => post(`/support/conversations/${segment(id)}/close`, {}),
  },
  chat,
};
