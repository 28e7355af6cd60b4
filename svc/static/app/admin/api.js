// The part of the API for administrators: `await administration.users.list({…})`.
import { download, get, patch, post, remove } from "../api.js";

const user = (id) => `/admin/users/${encodeURIComponent(id)}`;
const inbox = (id) => `/admin/support/conversations/${encodeURIComponent(id)}`;

/** @type {Administration} */
export const administration = {
  users: {
    // An empty `group` means accounts without a group, so it stays in the address.
    list: (values) => get(`/admin/users?${new URLSearchParams(values)}`),
    invite: (body) => post("/admin/users", body),
    show: (id) => get(user(id)),
    change: (id, body) => patch(user(id), body),
    resetLink: (id) => post(`${user(id)}/reset-link`, {}),
    remove: (id) => remove(user(id)),
    book: (id, kind, body) => post(`${user(id)}/${kind}`, body),
  },
  keys: {
    list: (id, values) => get(`${user(id)}/api-keys`, values),
    remove: (id, keyId) => remove(`${user(id)}/api-keys/${encodeURIComponent(keyId)}`),
    removeAll: (id) => remove(`${user(id)}/api-keys`),
  },
  usage: (values) => get("/admin/usage", values),
  signIns: (values) => get("/admin/sign-ins", values),
  csv: (list, values) =>
    download(`/admin/${list}?${new URLSearchParams(values)}`, { headers: { accept: "text/csv" } }),
  support: {
    list: (values) => get("/admin/support/conversations", values),
    show: (id) => get(inbox(id)),
    addMessage: (id, content) => post(`${inbox(id)}/messages`, { content }),
    close: (id) => post(`${inbox(id)}/close`, {}),
  },
  status: () => get("/admin/status"),
  models: {
    list: () => get("/admin/models"),
    add: (body) => post("/admin/models", body),
    remove: (name) => remove(`/admin/models/${encodeURIComponent(name)}`),
  },
  tools: (month) => get("/admin/tools", { month }),
  catalog: () => get("/admin/catalog"),
  reload: () => post("/admin/reload", {}),
  backup: () => post("/admin/backup", {}),
  audit: (values) => get("/admin/audit", values),
};
