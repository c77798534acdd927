// @ts-check
// All files of a run: what its workers left, and its own history as files.

import { html } from "../html.js";
import { More, useList } from "../parts/list.js";
import { Empty, Problem } from "../parts/pieces.js";
import { FileList } from "./file-list.js";

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const list = useList(
    `/runs/${encodeURIComponent(source.id)}/artifacts`,
    {},
    [],
    `${source.model.counts.artifacts} ${source.model.endedAt}`,
  );
  const [history, own] = [true, false].map((isHistory) =>
    (list.items ?? []).filter(({ kind }) => (kind === "evidence") === isHistory),
  );
  return html`
    ${list.error !== null && html`<${Problem} error=${list.error} retry=${list.again} />`}
    <section class="card" aria-labelledby="files-heading"><h2 id="files-heading">Files of its workers</h2>
      ${list.items !== null && own?.length === 0 && html`<${Empty}>The workers have left no files.</${Empty}>`}
      <${FileList} id=${source.id} files=${own} /><${More} list=${list} /></section>
    <section class="card" aria-labelledby="history-heading"><h2 id="history-heading">Its history as files</h2>
      <${FileList} id=${source.id} files=${history} /></section>`;
}
