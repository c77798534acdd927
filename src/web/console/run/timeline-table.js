// @ts-check
// The timeline as a table: what each agent waited and worked for, and what its attempts took of the machine.

import { duration, plural, size } from "../../dashboard/format.js";
import { html } from "../html.js";
import { shown } from "../parts/pieces.js";
import { Time } from "../parts/time.js";
import { Room, useRows } from "../parts/virtual-rows.js";
import { to } from "../router.js";
import { rangeOf } from "./range.js";
import { attemptsOf, totalsOf, usageOf } from "./spans.js";

/** @typedef {import("./timeline-picture.js").Row} Row */

/** Of an agent whose attempts are shown. Groups are open by the plain ids of their first agents. @param {string} id */
const attemptsKey = (id) => `attempts/${id}`;

/**
 * @param {{ kinds: readonly [import("./spans.js").SpanKind, string][], source: import("./run-source.js").RunSource, rows: Row[], opened: string[], toggle: (id: string) => void, nowMs: number }} properties
 */
export function Table({ kinds, source, rows, opened, toggle, nowMs }) {
  const lines = rows.flatMap((row) => {
    const spans = row.members.flatMap((id) => source.spans.byAgent.get(id) ?? []);
    const attempts = attemptsOf(spans);
    const isOpen = !row.isGroup && opened.includes(attemptsKey(row.id));
    /** @type {{ row: Row, spans: import("./spans.js").Span[], count: number, index: number }[]} */
    const agent = [{ row, spans, count: attempts.length, index: 0 }];
    return isOpen
      ? [...agent, ...attempts.map((span, at) => ({ row, spans: [span], count: 1, index: at + 1 }))]
      : agent;
  });
  const visible = useRows(lines.length);
  const nameOf = (/** @type {(typeof lines)[number]} */ { row, spans: [first], count, index }) => {
    if (index > 0) return html`Attempt ${first?.attempt ?? index}, <${Time} at=${timeOf(first)} />`;
    if (row.isGroup)
      return html`<button type="button" class="link" aria-expanded=${String(row.isOpen)} onClick=${() => toggle(row.id)} dir="auto">${shown(row.name, 80)}</button>`;
    const key = attemptsKey(row.id);
    return html`<span class="named"><a href=${to(["runs", source.id, "logs"], { agent: row.id, ...rangeOf() })} dir="auto">${shown(row.name, 80)}</a>
      ${count > 1 && html`<button type="button" class="link" aria-expanded=${String(opened.includes(key))} onClick=${() => toggle(key)}>${plural(count, "attempt")}</button>`}</span>`;
  };
  return html`<div class="virtual" tabindex="0" role="group" aria-label="The timeline as a table" onScroll=${visible.onScroll}><table aria-rowcount=${lines.length + 1}>
    <thead><tr aria-rowindex="1"><th scope="col">Agent</th>${kinds.map(([kind, name]) => html`<th key=${kind} scope="col">${name}</th>`)}
      <th scope="col">CPU time</th><th scope="col">Peak memory</th><th scope="col">Files</th><th scope="col">Critical path</th></tr></thead>
    <tbody><${Room} px=${visible.beforePx} />${lines.slice(visible.from, visible.to).map((line, place) => {
      const { row, spans, index } = line;
      const totals = totalsOf(spans, nowMs);
      const { cpuMs, rssBytes, fileBytes } = usageOf(attemptsOf(spans));
      return html`<tr key=${`${row.isGroup} ${row.id} ${index}`} aria-rowindex=${visible.from + place + 2}><th scope="row">${nameOf(line)}</th>
        ${kinds.map(([kind]) => html`<td key=${kind} class="number">${totals[kind] === undefined ? "–" : duration(totals[kind])}</td>`)}
        <td class="number">${cpuMs === null ? "–" : duration(cpuMs)}</td><td class="number">${rssBytes === null ? "–" : size(rssBytes)}</td><td class="number">${fileBytes === 0 ? "–" : size(fileBytes)}</td>
        <td>${row.isCritical && index === 0 ? "Yes" : ""}</td></tr>`;
    })}<${Room} px=${visible.afterPx} /></tbody></table></div>`;
}

/** @param {import("./spans.js").Span | undefined} span */
const timeOf = (span) => (span === undefined ? null : new Date(span.fromMs).toISOString());
