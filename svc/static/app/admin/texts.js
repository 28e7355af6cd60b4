// The texts of the administration, which only administrators load.
import { cost } from "../format.js";
import { limits } from "../limits.js";
import { texts } from "../texts.js";

const { count } = texts;

export const adminTexts = {
  parts: "Parts of the administration",
  views: {
    users: "Users",
    spend: "Spend",
    support: "Support",
    status: "Status",
    catalog: "Catalog",
    audit: "Audit",
  },
  refused: "Only for administrators",
  refusedText: "Ask an administrator of this service for access.",
  users: {
    search: "Search",
    searchHint: "Email, name or id",
    user: "User",
    group: "Group",
    anyGroup: "All groups",
    noGroup: "No group",
    autoGroup: "Automatic, by email address",
    groupHint: "The group decides which models can be used, and the monthly allowance.",
    status: "Status",
    anyStatus: "Any status",
    statuses: { active: "Active", suspended: "Suspended" },
    spent: "Spent this month",
    balance: "Balance",
    lastSeen: "Last seen",
    never: "never",
    admin: "Administrator",
    adminHint:
      "Can manage accounts, answer support and see all spending. Cannot read conversations or files of " +
      "others.",
    none: "No users yet",
    noneText: "Invite somebody to get started.",
    noneFound: "No matching users",
    clear: "Clear search and filters",
    invite: "Invite user",
    inviteAction: "Invite",
    inviteText: "The user gets a link to sign in. It works once, within 72 hours.",
    invited: "User invited",
    name: "Name",
    linkOnce: (email) =>
      `This service cannot send email. Copy the link now and send it to ${email}. It works once, within ` +
      "72 hours, and is not shown again.",
    linkMailed: (email) => `We sent the link to ${email}. It works once, within 72 hours.`,
    copyLink: "Copy link",
    makeLink: "Reset link",
    linkTitle: "Create a one-time link?",
    linkText: (email) =>
      limits.passwords
        ? `It lets ${email} set a new password. Earlier links stop working. The current password is valid ` +
          "until then."
        : `It signs in ${email} for ${limits.session_hours} hours. Earlier links stop working.`,
    linkMade: "Reset link",
    back: "All users",
    account: "Account",
    verified: "Email verified",
    yes: "Yes",
    no: "No",
    stored: "Storage",
    since: "Created",
    own: "This is your account. To delete it, open your settings.",
    suspend: "Suspend",
    suspendTitle: "Suspend this user?",
    suspendText: (email) =>
      `${email} is signed out, API keys are refused, and running requests end. Nothing is deleted. You can ` +
      "reactivate the account at any time.",
    suspendedText: "This account is suspended. Sign-in and API keys are refused. Nothing was deleted.",
    isSuspended: "Suspended",
    reactivate: "Reactivate",
    reactivated: "Reactivated",
    deleteKeys: "Delete all keys",
    deleteKeysTitle: "Delete all API keys?",
    deleteKeysText: (n) =>
      `${count(n, "key stops", "keys stop")} working immediately. This cannot be undone.`,
    delete: "Delete user",
    deleteText: "Permanently delete the account, its conversations, artifacts, keys and providers.",
    deleteTitle: (email) => `Delete ${email}?`,
    deleteWhat:
      "Keys stop working, running agents stop, and conversations, artifacts, projects and providers are " +
      "deleted. The balance of the wallet is lost. Ledger entries stay without the name. This cannot be " +
      "undone.",
    deleted: (email) => `Deleted ${email}`,
  },
  spend: {
    month: "Month",
    kinds: { user: "User", model: "Model", group: "Group", key: "API key", day: "Day" },
    by: {
      user: "Spend by user",
      model: "Spend by model",
      group: "Spend by group",
      key: "Spend by API key",
      day: "Spend by day",
    },
    none: "No usage in this month",
    everybody: "All users",
    total: "Total",
    share: "Share",
    special: {
      "(deleted accounts)": "Deleted accounts",
      "(sessions)": "Web app, without a key",
      "(no group)": "No group",
    },
    chartLabel: (month) => `Spend per day in ${month}. Use the left and right arrow keys to select a day.`,
    rest: (shown, all) => `The first ${count(shown, "row", "rows")} of ${all}. The CSV file has more.`,
  },
  support: {
    show: "Show",
    all: "All",
    none: "No conversations",
    noneText: "Messages of users to support appear here.",
    waiting: "Waiting",
    answered: "Answered",
    roles: { user: "User", operator: "Support" },
    closeText: "The user can still read it and start a new one.",
  },
  status: {
    fine: "Everything works.",
    look: (n) => `The service works. ${count(n, "finding needs", "findings need")} a check.`,
    wrong: (n) => `${count(n, "problem needs", "problems need")} attention.`,
    draining: "The service is shutting down.",
    again: "Refresh",
    answers: "Open streams",
    runs: (n) => count(n, "agent run", "agent runs"),
    held: "On hold",
    holds: (n) => count(n, "paid request in progress", "paid requests in progress"),
    wallets: "All wallets",
    accounts: (n) => count(n, "account", "accounts"),
    disk: "Free disk space",
    database: (size) => `Database: ${size}`,
    backup: "Last backup",
    noBackup: "None yet",
    certificate: "Certificate expires",
    proxy: "A proxy has the certificate",
    waiting: "Database jobs waiting",
    memory: "Memory",
    started: "Started",
    version: "Version",
    address: "Address",
    findings: "Checks",
    subjects: {
      certificate: "Certificate",
      disk: "Disk",
      backup: "Backup",
      clock: "Clock",
      speech: "Speech",
      mail: "Email",
      metrics: "Metrics",
      payments: "Payments",
    },
    grades: { ok: "OK", look: "Check", wrong: "Problem" },
    providers: "Model servers",
    provider: "Name",
    models: "Models",
    state: "Status",
    up: "Responding",
    down: "Not responding",
    neverAsked: "Not asked",
    noProviders: "No model servers are configured. The built-in models work without one.",
  },
  money: {
    text: (amount) =>
      `The balance is ${amount}. Each booking is in the ledger of the user and in the audit log.`,
    actions: { credits: "Add funds", debits: "Take funds" },
    titles: {
      credits: (email) => `Add funds for ${email}`,
      debits: (email) => `Take funds from ${email}`,
    },
    amount: "Amount in US dollars",
    note: "Note",
    noteHint: "Optional. The user sees it in the ledger.",
    booked: {
      credits: (amount, left) => `Added ${amount}. The balance is ${left}.`,
      debits: (amount, left) => `Took ${amount}. The balance is ${left}.`,
    },
  },
  backup: {
    title: "Backup",
    text: (folder) => `Backups are written to ${folder} on the server. They contain all secrets.`,
    noFolder: "To make backups here, the operator sets SVC_BACKUP_DIR to a folder of the server.",
    start: "Back up now",
    running: "Copying the database",
    failed: (why) => `The last backup failed: ${why}`,
  },
  catalog: {
    file: "To change models, prices and groups, edit the catalog file and reload it:",
    noFile: "There is no catalog file. The operator sets SVC_CATALOG to have one.",
    reload: "Reload",
    reloaded: "The catalog was read again.",
    stays: "The catalog has an error, so the earlier one stays in use.",
    servers: "Model servers",
    name: "Name",
    address: "Address",
    key: "Key",
    hasKey: "Set",
    noKey: "None",
    models: "Models",
    model: "Model",
    source: "Source",
    sources: { catalog: "Catalog file", builtin: "Built in", listed: "List of the server" },
    price: "Price",
    free: "Free",
    standard: "Default",
    aliases: (names) => `Also ${names.join(", ")}`,
    fallback: (id) => `If it fails: ${id}`,
    groups: "Groups",
    noGroups: "The catalog has no groups. Every user may use every model.",
    others: "Users without a group",
    mayUse: "Models",
    members: "Members",
    allowance: "Monthly allowance",
  },
  audit: {
    intro:
      "What administrators and the operator's commands changed, newest first. Entries cannot be deleted.",
    none: "Nothing has been changed yet",
    operator: "Operator (command line)",
    you: "You",
    gone: "Deleted administrator",
    deletedAccount: "a deleted account",
    /** The account is inserted at "…". */
    actions: {
      "user.add": "Added user …",
      "user.invite": "Invited …",
      "user.change": "Changed …",
      "user.reset_link": "Created a reset link for …",
      "user.delete_key": "Deleted an API key of …",
      "user.delete_keys": "Deleted all API keys of …",
      "user.delete": "Deleted an account",
      "support.reply": "Answered a support request of …",
      "support.close": "Closed a support request of …",
      credit: "Added funds to the wallet of …",
      debit: "Took funds from the wallet of …",
      restore: "Restored a backup",
      "secrets.rotate": "Rotated the secrets",
      backup: "Started a backup",
      reload: "Read the catalog again",
    },
    details,
  },
};

/** Return the details of a row of the audit log as text. */
function details(action, { name, admin, group, status, amount_micros: amount }) {
  const invited = action !== "user.change";
  return [
    status && (status === "suspended" ? "suspended" : "reactivated"),
    admin !== undefined && (admin ? "administrator" : !invited && "no longer an administrator"),
    group !== undefined && groupText(group),
    !invited && name !== undefined && (name ? `name “${name}”` : "no name"),
    amount !== undefined && cost(amount),
  ]
    .filter(Boolean)
    .join(", ");
}

function groupText(group) {
  if (group === null) return "no group";
  return group === "auto" ? "group by email address" : `group ${group}`;
}
