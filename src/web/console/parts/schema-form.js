// @ts-check
// Fields for a value, made of its JSON Schema. What a schema says in words of its own, and what no field can show, is
// written as JSON. The server judges the value: nothing here does.

import { html, useEffect, useId, useRef, useState } from "../html.js";
import { shown } from "./pieces.js";

const LONG_CHARS = 200;

/** @typedef {{ path: string, message: string }} Finding */

/**
 * @param {{ schema: any, value: any, change: (value: any) => void, findings?: readonly Finding[], path?: string, label?: string }} properties
 *   path: a JSON Pointer, by which findings are shown at their fields
 */
export function SchemaForm({ schema, value, change, findings = [], path = "", label = "Value" }) {
  const properties =
    schema?.type === "object" || schema?.properties ? Object.entries(schema.properties ?? {}) : [];
  if (properties.length === 0)
    return html`<${JsonField} label=${label} value=${value} change=${change} findings=${findings} path=${path} />`;
  const given = typeof value === "object" && value !== null ? value : {};
  const set = (/** @type {string} */ name) => (/** @type {unknown} */ next) => {
    const { [name]: _, ...others } = given;
    change(next === undefined ? others : { ...others, [name]: next });
  };
  return html`<div class="fields">${properties.map(([name, one]) => {
    const at = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const isRequired = Array.isArray(schema.required) && schema.required.includes(name);
    return html`<${Field} key=${name} name=${name} schema=${one} value=${given[name]} change=${set(name)} findings=${findings} path=${at} isRequired=${isRequired} />`;
  })}</div>`;
}

/** @param {any} properties */
function Field({ name, schema, value, change, findings, path, isRequired }) {
  const id = useId();
  const label = `${shown(schema?.title, 120) || name}${isRequired ? "" : " (optional)"}`;
  if (schema?.type === "object" && Object.keys(schema.properties ?? {}).length > 0) {
    return html`<fieldset class="group"><legend dir="auto">${label}</legend>
      ${describe(schema)}
      <${SchemaForm} schema=${schema} value=${value} change=${change} findings=${findings} path=${path} />
    </fieldset>`;
  }
  const control = controlOf({ id, schema, value, change, isRequired });
  if (control === null)
    return html`<${JsonField} label=${label} value=${value} change=${change} findings=${findings} path=${path} description=${schema?.description} />`;
  return html`<div class="field"><label for=${id} dir="auto">${label}</label>${control}${describe(schema)}<${Findings} findings=${findings} path=${path} /></div>`;
}

/** @param {any} properties */
function controlOf({ id, schema, value, change, isRequired }) {
  const text = (/** @type {any} */ event) =>
    change(event.target.value === "" && !isRequired ? undefined : event.target.value);
  if (Array.isArray(schema?.enum)) {
    const at = schema.enum.findIndex(
      (/** @type {unknown} */ one) => JSON.stringify(one) === JSON.stringify(value),
    );
    return html`<select id=${id} value=${String(at)} onChange=${(/** @type {any} */ event) => change(schema.enum[Number(event.target.value)])}>
      <option value="-1">${schema.default === undefined ? "Nothing chosen" : `Default: ${String(schema.default)}`}</option>
      ${schema.enum.map((/** @type {unknown} */ one, /** @type {number} */ index) => html`<option key=${index} value=${String(index)}>${shown(String(one), 120)}</option>`)}
    </select>`;
  }
  switch (schema?.type) {
    case "string":
      return schema.maxLength > LONG_CHARS || schema.format === "multiline"
        ? html`<textarea id=${id} rows="4" value=${value ?? ""} onInput=${text}></textarea>`
        : html`<input id=${id} type=${schema.format === "password" || schema.writeOnly ? "password" : "text"} value=${value ?? ""} placeholder=${hint(schema)} onInput=${text} autocomplete="off" />`;
    case "integer":
    case "number":
      return html`<input id=${id} type="number" step=${schema.type === "integer" ? "1" : "any"} min=${schema.minimum} max=${schema.maximum} value=${value ?? ""} placeholder=${hint(schema)}
        onInput=${(/** @type {any} */ event) => change(Number.isNaN(event.target.valueAsNumber) ? undefined : event.target.valueAsNumber)} />`;
    case "boolean":
      return html`<select id=${id} value=${value === undefined ? "" : String(value)} onChange=${(/** @type {any} */ event) => change({ true: true, false: false }[/** @type {string} */ (event.target.value)])}>
        <option value="">${schema.default === undefined ? "Nothing chosen" : `Default: ${schema.default ? "yes" : "no"}`}</option><option value="true">Yes</option><option value="false">No</option></select>`;
    default:
      return null;
  }
}

/** @param {any} schema */
const hint = (schema) =>
  schema.default === undefined ? "" : `Default: ${shown(String(schema.default), 80)}`;

/** @param {any} schema */
const describe = (schema) =>
  shown(schema?.description) === ""
    ? null
    : html`<p class="muted" dir="auto">${shown(schema.description, 1_000)}</p>`;

/**
 * Any value, as JSON. What is set from outside takes the place of what was typed; while that is no JSON, its form cannot be sent.
 *
 * @param {any} properties
 */
export function JsonField({ label, value, change, findings, path, description }) {
  const id = useId();
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [typed, setTyped] = useState({ text: written(value), value, problem: "" });
  const { text, problem } = typed.value === value ? typed : { text: written(value), problem: "" };
  useEffect(() => area.current?.setCustomValidity(problem), [problem]);
  const edit = (/** @type {any} */ event) => {
    const next = event.target.value;
    try {
      const read = next.trim() === "" ? undefined : JSON.parse(next);
      setTyped({ text: next, value: read, problem: "" });
      change(read);
    } catch (error) {
      const why = error instanceof Error ? error.message : "";
      setTyped({ text: next, value, problem: `This is no JSON yet: ${why}` });
    }
  };
  return html`<div class="field"><label for=${id} dir="auto">${label}, as JSON</label>
    <textarea id=${id} ref=${area} class="json" rows="6" spellcheck=${false} value=${text} onInput=${edit} aria-invalid=${problem !== ""}></textarea>
    ${describe({ description })}
    <p class="wrong" aria-live="polite">${problem}</p><${Findings} findings=${findings} path=${path} whole />
  </div>`;
}

/** @param {unknown} value */
const written = (value) => (value === undefined ? "" : JSON.stringify(value, null, 2));

/** @param {{ findings: readonly Finding[], path: string, whole?: boolean }} properties whole: also of what lies below */
const Findings = ({ findings, path, whole = false }) =>
  html`${findings
    .filter((one) => one.path === path || (whole && one.path.startsWith(`${path}/`)))
    .map(
      (one) => html`<p key=${one.path + one.message} class="wrong" dir="auto">${shown(one.message, 400)}</p>`,
    )}`;
