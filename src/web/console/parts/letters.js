// @ts-check
// Messages that were not processed: why, what was in them, and sending them again, as they are or changed.

import { count, plural } from "../../dashboard/format.js";
import { get, post } from "../api.js";
import { html, useState } from "../html.js";
import { to } from "../router.js";
import { isGuest } from "../session.js";
import { Diff } from "./diff.js";
import { Resend, retryPath } from "./letter-change.js";
import { reasons } from "./letter-reasons.js";
import { useResource } from "./list.js";
import { Facts, Json, Pill, shown } from "./pieces.js";
import { Time } from "./time.js";

/** How many are sent again by one press. */
const SENT_MAX = 500;
const PAGE_SIZE = 100;

/**
 * Asks about sending every open letter of a list again, beyond what is shown of it too.
 *
 * @param {{ ask: (asked: import("./many.js").Asked<any>) => void }} many
 * @param {string} path @param {Record<string, string>} query @param {() => void} after
 */
export function askToSendAll(many, path, query, after) {
  let isMore = false;
  many.ask({
    title: "Send all again",
    find: async () => {
      const found = [];
      let token = null;
      do {
        const page = await get(path, { ...query, status: "open", page_size: PAGE_SIZE, page_token: token });
        found.push(...page.items);
        token = page.next_page_token;
      } while (token !== null && found.length < SENT_MAX);
      isMore = token !== null || found.length > SENT_MAX;
      // Oldest first, as they came.
      return found.slice(0, SENT_MAX).reverse();
    },
    question: ({ length }) =>
      length === 0
        ? "No open message passes these filters."
        : `${isMore ? `The newest ${count(length)} of the` : count(length)} open messages that pass these filters are sent to their agents once more, and may fail again.`,
    confirm: ({ length }) => `Send ${plural(length, "message")} again`,
    act: (letter) => post(retryPath(letter)),
    nameOf: ({ dead_letter_id: id }) => id,
    done: "were sent again",
    after,
  });
}

/** @param {{ letters: any[], again: () => void, withRun?: boolean, isOver?: boolean }} properties isOver: their run has ended */
export const Letters = ({ letters, again, withRun = false, isOver = false }) =>
  html`${letters.map((letter) => html`<${Letter} key=${letter.dead_letter_id} letter=${letter} again=${again} withRun=${withRun} isOver=${isOver} />`)}`;

/** @param {{ letter: any, again: () => void, withRun: boolean, isOver: boolean }} properties */
function Letter({ letter, again, withRun, isOver }) {
  const { dead_letter_id: id, run_id: runId, message } = letter;
  const [isOpen, setOpen] = useState(false);
  return html`<section class="card" aria-label=${`Message ${id}`}>
    <div class="heading-line"><h2 dir="auto">${shown(message.type, 80) || "A message"}</h2>
      <div class="actions">
        ${letter.status === "retried" && html`<${Pill} state="completed" name="Sent again" />`}
        ${
          letter.status === "open" &&
          !isGuest() &&
          !isOver &&
          html`<${Resend} letter=${letter} again=${again} />`
        }
      </div></div>
    <${Facts} items=${[
      ["Reason", reasons.get(letter.reason) ?? letter.reason],
      ["From", shown(message.from, 80)],
      ["To", shown(letter.agent_id, 80)],
      ["Tried", `${letter.attempts} ×`],
      ["Given up", html`<${Time} at=${letter.created_at} />`],
      ["Sent again", letter.retried_at && html`<${Time} at=${letter.retried_at} />`],
      ["Changed by", letter.change && shown(letter.change.principal, 80)],
      ["Run", withRun && html`<a href=${to(["runs", runId])}><code>${runId}</code></a>`],
    ]} />
    <details onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}><summary>Its body</summary>
      ${isOpen && html`<${Body} letter=${letter} />`}</details>
  </section>`;
}

/** @param {{ letter: any }} properties */
function Body({ letter }) {
  const { message, change } = letter;
  return html`<${Json} value=${message.body} label="Body of the message" />
    ${
      change !== null &&
      html`<h3>What it was changed to</h3>
      <${Diff} before=${message.body} after=${change.body} names=${["As it came", "As it was sent again"]} same="Nothing: it was sent as it came." />`
    }
    ${letter.status === "open" && html`<${Comparison} letter=${letter} />`}`;
}

/** @param {{ letter: any }} properties */
function Comparison({ letter }) {
  const { value } = useResource(
    `/runs/${encodeURIComponent(letter.run_id)}/dead-letters?page_size=${PAGE_SIZE}`,
  );
  if (value === null) return null;
  const good = lastTaken(value.items, letter);
  const name = shown(letter.message.type, 80);
  if (good === undefined) {
    return html`<p class="muted below" dir="auto">Nothing to compare it with: the run keeps bodies of dead letters alone, and none of type ${name} to this agent was taken when it was sent again.</p>`;
  }
  const body = good.change === null ? good.message.body : good.change.body;
  return html`<h3>Compared with the last one that was taken</h3>
    <p class="muted" dir="auto">The newest of type ${name} to this agent that was sent again and did not come back: <code>${good.dead_letter_id}</code></p>
    <${Diff} before=${body} after=${letter.message.body} names=${["That one", "This one"]} same="Nothing: both bodies are the same." />`;
}

/**
 * What its agent took last of this type, as far as a run tells: it keeps no bodies but those of dead letters.
 *
 * @param {any[]} letters newest first @param {any} letter
 */
function lastTaken(letters, { dead_letter_id: id, agent_id: agent, message: { type } }) {
  const cameBack = new Set(letters.map(({ message }) => message.causation_id));
  return letters.find(
    ({ dead_letter_id: other, status, agent_id: to, message }) =>
      other !== id &&
      status === "retried" &&
      to === agent &&
      message.type === type &&
      !cameBack.has(message.message_id),
  );
}
