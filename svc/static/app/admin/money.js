// Credits and debits of one user's wallet.
import { useSignal } from "@preact/signals";
import { Button, Dialog, Field, Notice, toast } from "../components.js";
import { balance } from "../format.js";
import { html } from "../html.js";
import { limits } from "../limits.js";
import { texts } from "../texts.js";
import { administration } from "./api.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.money;
const MICROS = 1_000_000;

/** The buttons that book. `onChange` gets the user with the new balance. */
export function Wallet({ of, onChange }) {
  const booking = useSignal(/** @type {"credits" | "debits"} */ (null));
  const button = (kind) => html`<${Button}
    onClick=${() => {
      booking.value = kind;
    }}
  >${t.actions[kind]}<//>`;
  return html`
    <h2>${texts.views.wallet}</h2>
    <div class="card stack">
      <p>${t.text(balance(of.balance_micros))}</p>
      <div class="actions">${button("credits")}${button("debits")}</div>
    </div>
    ${
      booking.value &&
      html`<${Booking}
        kind=${booking.value}
        of=${of}
        onChange=${onChange}
        onClose=${() => {
          booking.value = null;
        }}
      />`
    }
  `;
}

function Booking({ kind, of, onChange, onClose }) {
  // With its id, a second click or another try after a lost answer books nothing twice.
  const id = useSignal(crypto.randomUUID()),
    busy = useSignal(false),
    error = useSignal(null);
  const book = async (event) => {
    event.preventDefault();
    const { dollars, note } = /** @type {Record<string, string>} */ (
      Object.fromEntries(new FormData(event.currentTarget))
    );
    const amount_micros = Math.round(Number(dollars) * MICROS);
    [busy.value, error.value] = [true, null];
    try {
      const body = { amount_micros, id: id.peek(), ...(note.trim() && { note: note.trim() }) };
      const row = await administration.users.book(of.id, kind, body);
      toast(t.booked[kind](balance(amount_micros), balance(row.balance_after_micros)), { kind: "good" });
      onClose();
      onChange(await administration.users.show(of.id));
    } catch (problem) {
      // The amount was changed after a try.
      if (problem.code === "booking_mismatch") id.value = crypto.randomUUID();
      [busy.value, error.value] = [false, problem];
    }
  };
  const told = error.value?.param,
    isShort = error.value?.code === "insufficient_funds";
  return html`<${Dialog} title=${t.titles[kind](of.email)} onClose=${onClose}>
    <form class="stack" onSubmit=${book}>
      <${Field}
        label=${t.amount}
        name="dollars"
        type="number"
        min="0.000001"
        step="any"
        inputmode="decimal"
        required
        autofocus
        autocomplete="off"
        error=${told === "amount_micros" ? error.value.message : null}
      />
      <${Field}
        label=${t.note}
        name="note"
        hint=${t.noteHint}
        ...${limits.booking.note}
        autocomplete="off"
        error=${told === "note" ? error.value.message : null}
      />
      ${
        error.value &&
        !["amount_micros", "note"].includes(told) &&
        html`<${Notice} kind="bad" icon="warning">
          ${isShort ? t.notEnough(balance(of.balance_micros)) : error.value.message}
        <//>`
      }
      <div class="actions dialog-foot">
        <${Button} onClick=${onClose}>${texts.common.cancel}<//>
        <${Button} kind=${kind === "debits" ? "danger" : "primary"} type="submit" busy=${busy.value}>
          ${t.actions[kind]}
        <//>
      </div>
    </form>
  <//>`;
}
