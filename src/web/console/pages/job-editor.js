// @ts-check
// Changes a job's name, weight and configuration: fields where its blueprint has a schema, and the JSON beside them. What is sent is
// what was changed, on the revision that was read. When the job has changed meanwhile, it is read again, what was typed is laid over it,
// and what changed is shown before anything is saved.

import { ApiProblem, request, patch as sendPatch } from "../api.js";
import { html, useEffect, useId, useRef, useState } from "../html.js";
import { useChecked } from "../parts/checked.js";
import { Diff } from "../parts/diff.js";
import { patched, patchOf } from "../parts/merge-patch.js";
import { Problem, shown } from "../parts/pieces.js";
import { JsonField, SchemaForm } from "../parts/schema-form.js";

const WEIGHT_MAX = 100;

/** @typedef {{ name: string, weight: number, resolved_configuration: Record<string, any> }} Definition */
/** @typedef {{ definition: Definition, etag: string }} Read */

/** @param {string} path @returns {Promise<Read>} */
async function read(path) {
  const answer = await request("GET", path);
  const { name, weight, resolved_configuration } = await answer.json();
  return { definition: { name, weight, resolved_configuration }, etag: answer.headers.get("etag") ?? "" };
}

/**
 * @param {{ path: string, schema: any, validate?: string | undefined, close: () => void, saved: () => void }} properties
 *   path: of the job; schema: of its configuration, null without one; validate: the path that checks it
 */
export function Editor({ path, schema, validate, close, saved }) {
  const [first, setFirst] = useState(/** @type {Read | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const start = () => {
    setError(null);
    read(path).then(setFirst, setError);
  };
  useEffect(start, [path]);
  return html`<section class="card" aria-labelledby="edit-heading"><h2 id="edit-heading">Change the job</h2>
    ${error !== null && html`<${Problem} error=${error} retry=${start} />`}
    ${first !== null && html`<${Form} path=${path} first=${first} schema=${schema} validate=${validate} close=${close} saved=${saved} />`}
  </section>`;
}

/** @param {{ path: string, first: Read, schema: any, validate: string | undefined, close: () => void, saved: () => void }} properties */
function Form({ path, first, schema, validate, close, saved }) {
  const [base, setBase] = useState(first);
  const [typed, setTyped] = useState(first.definition);
  const [meanwhile, setMeanwhile] = useState(
    /** @type {{ before: Definition, after: Definition } | null} */ (null),
  );
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const told = useRef(/** @type {HTMLElement | null} */ (null));
  // It stands above what was typed, and is to be seen first.
  useEffect(() => told.current?.focus(), [meanwhile]);
  const nameId = useId();
  const weightId = useId();
  const { resolved_configuration: configuration } = typed;
  const checked = useChecked(validate, { config: configuration });
  // A check of a start may find something else, too.
  const findings = checked.errors.filter(({ path: place }) =>
    /^\/(?:config|name|weight)(?:\/|$)/.test(place),
  );
  const change = (/** @type {Partial<Definition>} */ some) => setTyped((before) => ({ ...before, ...some }));
  const configure = (/** @type {any} */ value) => change({ resolved_configuration: value ?? {} });

  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    const changes = patchOf(base.definition, typed);
    try {
      await sendPatch(path, changes, { "if-match": base.etag });
      saved();
      return;
    } catch (error) {
      await recover(error, changes).catch((again) => setProblem(textOf(again)));
    }
    setBusy(false);
  };

  const recover = async (/** @type {unknown} */ error, /** @type {Record<string, any>} */ changes) => {
    if (!(error instanceof ApiProblem && error.status === 412)) {
      if (error instanceof ApiProblem) checked.tell(error.errors.map(asChecked));
      setProblem(textOf(error));
      return;
    }
    const now = await read(path);
    setMeanwhile({ before: first.definition, after: now.definition });
    setBase(now);
    setTyped(/** @type {any} */ (patched(now.definition, changes)));
  };

  const hasFields = Object.keys(schema?.properties ?? {}).length > 0;
  const at = (/** @type {string} */ place) =>
    findings
      .filter((one) => one.path === place)
      .map((one) => html`<p key=${one.message} class="wrong" dir="auto">${shown(one.message, 400)}</p>`);
  return html`<form class="edit" onSubmit=${save}>
    ${
      meanwhile !== null &&
      html`<div class="notice" role="alert" tabindex="-1" ref=${told}><h3>The job was changed meanwhile</h3>
      <p>What you typed is below, laid over what the job is now. Nothing is saved yet.</p>
      <${Diff} before=${meanwhile.before} after=${meanwhile.after} names=${["When you began", "Now"]} same="Its name, weight and configuration are as they were." /></div>`
    }
    <div class="fields">
      <div class="field"><label for=${nameId}>Name</label><input id=${nameId} required maxlength="200" autocomplete="off" value=${typed.name} onInput=${(/** @type {any} */ event) => change({ name: event.target.value })} />${at("/name")}</div>
      <div class="field"><label for=${weightId}>Weight</label><input id=${weightId} type="number" required min="1" max=${WEIGHT_MAX} step="1" value=${typed.weight} onInput=${(/** @type {any} */ event) => change({ weight: event.target.valueAsNumber })} />${at("/weight")}</div>
    </div>
    <div class=${hasFields ? "beside" : ""}>
      ${
        hasFields &&
        html`<fieldset class="group"><legend>Configuration</legend>
        <${SchemaForm} schema=${schema} value=${configuration} change=${configure} findings=${findings} path="/config" /></fieldset>`
      }
      <${JsonField} label="Configuration" value=${configuration} change=${configure} findings=${findings} path="/config" />
    </div>
    <div class="actions">
      <button type="submit" class="primary" disabled=${isBusy}>${meanwhile === null ? "Save" : "Save over it"}</button>
      <button type="button" onClick=${close}>Close without saving</button>
      ${checked.isCurrent && findings.length === 0 && html`<span class="muted" role="status">The server would accept this.</span>`}
    </div>
    <p class="muted">Runs that start from now on use it. "********" keeps the secret that is stored.</p>
    <p class="wrong" role="alert" dir="auto">${problem}</p>
  </form>`;
}

/** @param {unknown} error */
const textOf = (error) => (error instanceof Error ? error.message : String(error));

/** Problems of a change name resolved_configuration what a check calls config. @param {any} finding */
const asChecked = (finding) => ({
  ...finding,
  path: finding.path.replace(/^\/resolved_configuration/, "/config"),
});
