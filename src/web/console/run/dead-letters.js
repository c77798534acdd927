// @ts-check
// The messages of this run that were not processed, and all of them sent again.

import { html } from "../html.js";
import { askToSendAll, Letters } from "../parts/letters.js";
import { More, useList } from "../parts/list.js";
import { useMany } from "../parts/many.js";
import { Empty, Problem } from "../parts/pieces.js";
import { to } from "../router.js";
import { isGuest } from "../session.js";

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const path = `/runs/${encodeURIComponent(source.id)}/dead-letters`;
  const list = useList(path, {}, [], source.model.counts.warnings);
  const many = useMany();
  const open = (list.items ?? []).filter(({ status }) => status === "open");
  const isOver = source.run.finished_at !== null;
  const sendAll = () => askToSendAll(many, path, {}, list.again);
  return html`${many.dialog}
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    ${list.items?.length === 0 && html`<${Empty}>Every message of this run was processed.</${Empty}>`}
    ${isOver && open.length > 0 && !isGuest() && html`<p class="muted">The run has ended, and its agents take no messages any more. <a href=${to(["runs", source.id, "rerun"])}>Run it again</a> instead.</p>`}
    ${!isOver && open.length > 1 && !isGuest() && html`<div class="actions"><button type="button" onClick=${sendAll}>Send all again …</button></div>`}
    ${list.items !== null && html`<${Letters} letters=${list.items} again=${list.again} isOver=${isOver} />`}
    <${More} list=${list} />`;
}
