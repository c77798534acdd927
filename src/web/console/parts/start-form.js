// @ts-check
// A start of a run: its inputs and changes of the configuration, in fields where there is a schema. Of a blueprint, the
// server checks both as one types. Each press of the button is one start.

import { ApiProblem, post } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { go, to } from "../router.js";
import { useChecked } from "./checked.js";
import { shown } from "./pieces.js";
import { SchemaForm } from "./schema-form.js";

/**
 * @param {{ start: string, validate?: string, inputSchema?: any, configSchema?: any, inputs?: any, overrides?: any, repeats?: string, changed?: (given: { inputs: any, overrides: any }) => void }} properties
 *   start: the path to post to; validate: the path that checks; without configSchema there is no
 *   configuration to change; repeats: the run whose inputs and changes, secrets included, the new one has where they are left as they are
 */
export function StartForm({
  start,
  validate,
  inputSchema,
  configSchema,
  inputs: first = {},
  overrides: firstOverrides,
  repeats,
  changed,
}) {
  const [inputs, setInputs] = useState(first);
  const [overrides, setOverrides] = useState(firstOverrides);
  const [priority, setPriority] = useState("normal");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const hasConfiguration = configSchema !== undefined;

  const found = useChecked(validate, { inputs: inputs ?? {}, ...(overrides && { config: overrides }) });
  useEffect(() => changed?.({ inputs, overrides }), [inputs, overrides]);

  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      const isKept = (/** @type {unknown} */ now, /** @type {unknown} */ before) =>
        repeats !== undefined && JSON.stringify(now) === JSON.stringify(before);
      // Even an empty change has a meaning: the blueprint as it is now.
      const isChanged =
        repeats === undefined ? Object.keys(overrides ?? {}).length > 0 : !isKept(overrides, firstOverrides);
      const body = {
        priority,
        ...(repeats !== undefined && { rerun_of: repeats }),
        ...(!isKept(inputs, first) && { inputs: inputs ?? {} }),
        ...(isChanged && { config_overrides: overrides ?? {} }),
      };
      const { run_id: runId } = await post(start, body);
      go(to(["runs", runId]));
    } catch (error) {
      if (error instanceof ApiProblem) found.tell(error.errors.map(asChecked));
      setProblem(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  const other = found.errors.filter(({ path }) => !/^\/(?:inputs|config)(?:\/|$)/.test(path));
  return html`<form class="start" onSubmit=${submit}>
    <section class="card" aria-labelledby="form-inputs"><h2 id="form-inputs">Inputs</h2>
      <${SchemaForm} schema=${inputSchema} value=${inputs} change=${setInputs} findings=${found.errors} path="/inputs" label="Inputs" /></section>
    ${
      hasConfiguration &&
      html`<section class="card" aria-labelledby="form-config"><h2 id="form-config">Changes of the configuration</h2>
      <${SchemaForm} schema=${configSchema} value=${overrides} change=${setOverrides} findings=${found.errors} path="/config" label="Changes" /></section>`
    }
    <section class="card" aria-label="Start"><div class="actions">
      <label class="field inline">Priority <select value=${priority} onChange=${(/** @type {any} */ event) => setPriority(event.target.value)}>
        ${["low", "normal", "high"].map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>
      <button type="submit" class="primary" disabled=${isBusy}>Start the run</button>
      ${found.isCurrent && found.errors.length === 0 && html`<span class="muted" role="status">The server would accept this.</span>`}
    </div>
    ${found.warnings.map((one) => html`<p key=${one.message} class="muted" dir="auto">${shown(one.message, 400)}</p>`)}
    <div role="alert">${other.map((one) => html`<p key=${one.message} class="wrong" dir="auto">${shown(one.message, 400)}</p>`)}
      <p class="wrong" dir="auto">${problem}</p></div></section>
  </form>`;
}

/** Problems of a start name config_overrides what a check calls config. @param {any} finding */
const asChecked = (finding) => ({ ...finding, path: finding.path.replace(/^\/config_overrides/, "/config") });
