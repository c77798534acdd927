// @ts-check
// What the machines have, what of it commands may have, and who sets that.

import { count, size } from "../../dashboard/format.js";
import { request } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { patched, patchOf } from "../parts/merge-patch.js";
import { Problem, shown } from "../parts/pieces.js";
import { SchemaForm } from "../parts/schema-form.js";
import { Screen } from "../parts/screen.js";

const PATH = "/resource";
const percent = { type: "number", minimum: 1, maximum: 100 };
const bytes = { type: "integer", minimum: 1 };
const schema = {
  type: "object",
  properties: {
    cpu_percent: { ...percent, title: "Cores, in percent" },
    memory_percent: { ...percent, title: "Memory, in percent" },
    memory_bytes: { ...bytes, title: "Memory, in bytes" },
    disk_percent: { ...percent, title: "Disk, in percent" },
    disk_bytes: { ...bytes, title: "Disk, in bytes" },
    gpu_indices: { type: "array", title: "GPUs, by their numbers", description: "None: []." },
  },
};

/** @type {readonly [string, string, (value: number) => string][]} */
const kinds = [
  ["cpu_cores", "Cores", count],
  ["memory_bytes", "Memory", size],
  ["disk_bytes", "Disk", size],
];

export function Page() {
  const [read, setRead] = useState(/** @type {{ resource: any, etag: string } | null} */ (null));
  const [limits, setLimits] = useState(/** @type {any} */ ({}));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [said, setSaid] = useState("");
  const reads = async () => {
    const answer = await request("GET", PATH);
    return { resource: await answer.json(), etag: answer.headers.get("etag") ?? "" };
  };
  /** @param {any} mine what was changed here and is not saved, as a merge patch @param {string} words */
  const again = async (mine, words) => {
    try {
      const now = await reads();
      setRead(now);
      setLimits(patched(now.resource.limits, mine));
      setProblem(null);
      setSaid(words);
    } catch (error) {
      setProblem(error);
    }
  };
  useEffect(() => void again({}, ""), []);
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (read === null) return;
    const mine = patchOf(read.resource.limits, limits);
    const headers = { "if-match": read.etag };
    try {
      await request("PUT", PATH, { body: { limits }, headers });
      await again({}, "Saved. Commands that run keep what they have.");
    } catch (error) {
      const isStale = /** @type {any} */ (error).status === 412;
      if (isStale)
        await again(
          mine,
          "Not saved: somebody else has changed limits meanwhile. Theirs are shown now, with your changes; save again.",
        );
      else setProblem(error);
    }
  };
  const findings = (problem?.errors ?? []).map((/** @type {any} */ one) => ({
    ...one,
    path: one.path.replace(/^\/limits/, ""),
  }));
  return html`<${Screen} title="Limits" heading=${html`<p class="muted">What of each machine commands may have. What has no limit may be had whole.</p>`}>
    ${problem !== null && html`<${Problem} error=${problem} retry=${read === null ? () => void again({}, "") : undefined} />`}
    ${
      read !== null &&
      html`<div class="card rows"><table>
        <thead><tr><th scope="col">Of all machines</th><th scope="col">There is</th><th scope="col">Commands may have</th><th scope="col">They have</th><th scope="col">In use by all</th></tr></thead>
        <tbody>${kinds.map(([name, words, text]) => html`<tr key=${name}><th scope="row">${words}</th>${cells(read.resource, name, text)}</tr>`)}
          <tr><th scope="row">GPUs</th><td data-name="There is">${gpus(read.resource.totals)}</td><td data-name="Commands may have">${gpus(read.resource.effective)}</td><td data-name="They have">${count(read.resource.reserved.gpus)}</td><td>–</td></tr></tbody>
      </table></div>
      <section class="card" aria-labelledby="limits-heading"><h2 id="limits-heading">Limits of each machine</h2>
        <form onSubmit=${save}>
          <${SchemaForm} schema=${schema} value=${limits} change=${setLimits} findings=${findings} label="Limits" />
          <div class="actions end"><p role="status" class="muted">${said}</p><button type="submit" class="primary">Save the limits</button></div>
        </form></section>`
    }
  </${Screen}>`;
}

/** @param {any} resource @param {string} name @param {(value: number) => string} text */
const cells = ({ totals, effective, reserved, used }, name, text) => [
  html`<td data-name="There is">${text(totals[name])}</td>`,
  html`<td data-name="Commands may have">${text(effective[name])}</td>`,
  html`<td data-name="They have">${text(reserved[name])}</td>`,
  html`<td data-name="In use by all">${text(used[name])}</td>`,
];

/** @param {any} machine */
const gpus = ({ gpus: all }) =>
  all.length === 0
    ? "None"
    : all.map((/** @type {any} */ { index, name }) => `${index}: ${shown(name, 60)}`).join(", ");
