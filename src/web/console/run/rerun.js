// @ts-check
// The run once more: with its inputs and changes of the configuration, or with others; what differs is shown.

import { html, useState } from "../html.js";
import { Diff } from "../parts/diff.js";
import { useResource } from "../parts/list.js";
import { StartForm } from "../parts/start-form.js";
import { to } from "../router.js";

/** @param {{ source: import("./run-source.js").RunSource }} properties */
export function Tab({ source }) {
  const { run } = source;
  const job = useResource(`/jobs/${encodeURIComponent(run.job_id)}`);
  const blueprintId = job.value?.source.blueprint_id;
  const blueprint = useResource(
    blueprintId === undefined ? null : `/blueprints/${encodeURIComponent(blueprintId)}`,
  );
  const [given, setGiven] = useState({ inputs: run.inputs, overrides: run.config_overrides ?? undefined });
  if (
    job.value === null ||
    (blueprintId !== undefined && blueprint.value === null && blueprint.error === null)
  )
    return null;
  const before = { inputs: run.inputs, config_overrides: run.config_overrides ?? {} };
  const after = { inputs: given.inputs ?? {}, config_overrides: given.overrides ?? {} };
  return html`
    <${StartForm} repeats=${source.id} start=${`/jobs/${encodeURIComponent(run.job_id)}/runs`} inputs=${run.inputs} overrides=${run.config_overrides ?? undefined}
      inputSchema=${blueprint.value?.input_schema} configSchema=${blueprintId === undefined ? undefined : (blueprint.value?.config_schema ?? null)}
      validate=${blueprintId === undefined ? undefined : `/blueprints/${encodeURIComponent(blueprintId)}/validate`} changed=${setGiven} />
    <section class="card" aria-labelledby="diff-heading"><h2 id="diff-heading">What differs from this run</h2>
      <${Diff} before=${before} after=${after} names=${["This run", "The new run"]} same="Nothing: it is started as it was." />
      <p class="below"><a href=${to(["runs"], { rerun_of: source.id })}>Runs that repeat this one</a></p></section>`;
}
