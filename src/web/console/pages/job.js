// @ts-check
// One job: its definition, its agents in its last runs, and a start of a run.

import { html } from "../html.js";
import { useResource } from "../parts/list.js";
import { announce, Facts, Json, Problem, shown } from "../parts/pieces.js";
import { Screen } from "../parts/screen.js";
import { StartForm } from "../parts/start-form.js";
import { Time } from "../parts/time.js";
import { parameter, setQuery, to } from "../router.js";
import { Editor } from "./job-editor.js";
import { Grid } from "./job-grid.js";

/** @param {{ id: string }} properties */
export function Page({ id }) {
  const path = `/jobs/${encodeURIComponent(id)}`;
  const { value: job, error, again } = useResource(path, ["runs"]);
  const blueprintId = job?.source.blueprint_id;
  const blueprint = useResource(
    blueprintId === undefined ? null : `/blueprints/${encodeURIComponent(blueprintId)}`,
  );
  if (job === null)
    return html`<${Screen} title="Job">${error !== null && html`<${Problem} error=${error} retry=${again} />`}</${Screen}>`;
  const close = () => setQuery({ edit: "" });
  const isReady = blueprintId === undefined || blueprint.value !== null || blueprint.error !== null;
  return html`<${Screen} title=${shown(job.name, 200) || id} heading=${html`<p class="muted"><code>${id}</code></p>`}
      actions=${html`<button type="button" onClick=${() => setQuery({ edit: "1" })}>Edit</button>
        <a class="button" href=${to(["runs"], { job: id })}>All its runs</a>`}>
    <section class="card" aria-label="The job">
      <${Facts} items=${[
        ["State", shown(job.status, 40)],
        ["Graph", shown(job.graph_id, 80)],
        ["Blueprint", blueprintId && html`<a href=${to(["blueprints", blueprintId])}>${blueprintId}</a>`],
        ["Weight", String(job.weight)],
        ["Revision", String(job.revision)],
        ["Created", html`<${Time} at=${job.created_at} />`],
      ]} />
      <details><summary>Its configuration</summary><${Json} value=${job.resolved_configuration} label="Configuration of the job" /></details>
    </section>
    ${
      parameter("edit") === "1" &&
      isReady &&
      html`<${Editor} path=${path} schema=${blueprint.value?.config_schema ?? null} close=${close} saved=${() => {
        close();
        again();
        announce("The job was changed");
      }}
        validate=${blueprintId === undefined ? undefined : `/blueprints/${encodeURIComponent(blueprintId)}/validate`} />`
    }
    <${Grid} jobId=${id} />
    ${
      isReady &&
      html`<${StartForm} start=${`${path}/runs`} inputSchema=${blueprint.value?.input_schema} configSchema=${blueprintId === undefined ? undefined : (blueprint.value?.config_schema ?? null)}
        validate=${blueprintId === undefined ? undefined : `/blueprints/${encodeURIComponent(blueprintId)}/validate`} />`
    }
  </${Screen}>`;
}
