// @ts-check
// The messages of this run that were not processed, and all of them sent again.

import { post } from "../api.js";
import { html } from "../html.js";
import { Action } from "../parts/dialog.js";
import { Letters } from "../parts/letters.js";
import { More, useList } from "../parts/list.js";
import { Empty, Problem } from "../parts/pieces.js";
import { isGuest } from "../session.js";

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const path = `/runs/${encodeURIComponent(source.id)}/dead-letters`;
  const list = useList(path, {}, [], source.model.counts.warnings);
  const open = (list.items ?? []).filter(({ status }) => status === "open");
  const resend = async () => {
    await post(`${path}/retry`);
    list.again();
  };
  return html`
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>Every message of this run was processed.</${Empty}>`}
    ${open.length > 1 && !isGuest() && html`<div class="actions"><${Action} label="Send all again" act=${resend} question="Each open message is sent to its agent once more, and may fail again." /></div>`}
    ${list.items !== null && html`<${Letters} letters=${list.items} again=${list.again} />`}
    <${More} list=${list} />`;
}
