// @ts-check
// Messages that were not processed: why, what was in them, and sending them again.

import { post } from "../api.js";
import { html } from "../html.js";
import { to } from "../router.js";
import { isGuest } from "../session.js";
import { Action } from "./dialog.js";
import { Facts, Json, shown } from "./pieces.js";
import { Time } from "./time.js";

export const reasons = new Map(
  Object.entries({
    ttl_expired: "Its time was over",
    target_gone: "Its agent has ended or does not exist",
    mailbox_full: "Its agent had no room",
    processing_failed: "Its processing failed",
  }),
);

/** @param {{ letters: any[], again: () => void, withRun?: boolean }} properties */
export const Letters = ({ letters, again, withRun = false }) =>
  html`${letters.map((letter) => html`<${Letter} key=${letter.dead_letter_id} letter=${letter} again=${again} withRun=${withRun} />`)}`;

/** @param {{ letter: any, again: () => void, withRun: boolean }} properties */
function Letter({ letter, again, withRun }) {
  const { dead_letter_id: id, run_id: runId, message } = letter;
  const resend = async () => {
    await post(`/runs/${encodeURIComponent(runId)}/dead-letters/${encodeURIComponent(id)}/retry`);
    again();
  };
  return html`<section class="card" aria-label=${`Message ${id}`}>
    <div class="heading-line"><h2 dir="auto">${shown(message.type, 80) || "A message"}</h2>
      <div class="actions">${letter.status === "open" && !isGuest() && html`<${Action} label="Send again" act=${resend} />`}</div></div>
    <${Facts} items=${[
      ["Reason", reasons.get(letter.reason) ?? letter.reason],
      ["From", shown(message.from, 80)],
      ["To", shown(letter.agent_id, 80)],
      ["Tried", `${letter.attempts} ×`],
      ["Given up", html`<${Time} at=${letter.created_at} />`],
      ["Sent again", letter.retried_at && html`<${Time} at=${letter.retried_at} />`],
      ["Run", withRun && html`<a href=${to(["runs", runId])}><code>${runId}</code></a>`],
    ]} />
    <details><summary>Its body</summary><${Json} value=${message.body ?? message} label="Body of the message" /></details>
  </section>`;
}
