// @ts-check
// The registration of a model: what kind of source it has decides what is asked.

import { post } from "../api.js";
import { html, useId, useState } from "../html.js";
import { Dialog } from "../parts/dialog.js";
import { shown } from "../parts/pieces.js";
import { go, to } from "../router.js";

/**
 * Fields of a source; those of a server lie one level deeper.
 *
 * @type {Readonly<Record<string, { label: string, inside?: boolean, fields: readonly (readonly [name: string, label: string, hint: string])[] }>>}
 */
const kinds = {
  file: {
    label: "A file",
    fields: [["file", "Path", "On the machine of the gateway, absolute: GGUF or safetensors."]],
  },
  folder: {
    label: "A folder of Hugging Face",
    fields: [["folder", "Path", "On the machine of the gateway, absolute, with config.json."]],
  },
  url: {
    label: "A download",
    fields: [
      ["url", "Address", "https://…"],
      ["sha256", "SHA-256", "What it has to be: 64 digits."],
      ["token", "Token (optional)", "Sent to that server alone, and stored encrypted."],
    ],
  },
  payload: {
    label: "A blueprint's file",
    fields: [
      ["blueprint_id", "Blueprint", "One that is added."],
      ["payload", "Path", "Inside its payloads/."],
    ],
  },
  ollama: {
    label: "An Ollama-compatible server",
    inside: true,
    fields: [
      ["base_url", "Address", "http://127.0.0.1:11434"],
      ["model", "Model", "Such as llama3.2:3b."],
    ],
  },
  openai: {
    label: "An OpenAI-compatible endpoint",
    inside: true,
    fields: [
      ["base_url", "Address", "https://api.example.com/v1"],
      ["model", "Model", "As the endpoint calls it."],
      ["api_key", "API key (optional)", "Stored encrypted, and never shown."],
    ],
  },
};
const secrets = new Set(["token", "api_key"]);

/** @param {{ done: () => void }} properties */
export function Register({ done }) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return html`<button type="button" class="primary" onClick=${() => setOpen(true)}>Register a model</button>
    ${isOpen && html`<${Dialog} title="Register a model" class="broad" close=${close}><${Form} close=${close} done=${done} /></${Dialog}>`}`;
}

/** @param {{ close: () => void, done: () => void }} properties */
function Form({ close, done }) {
  const [kind, setKind] = useState("file");
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const id = useId();
  const { fields, inside = false } = /** @type {(typeof kinds)[string]} */ (kinds[kind]);
  const register = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    const given = Object.fromEntries(
      fields.map(([name]) => [name, values[name] ?? ""]).filter(([, text]) => text !== ""),
    );
    const { model_id, name } = values;
    try {
      const model = await post("/models", {
        source: inside ? { [kind]: given } : given,
        ...(model_id ? { model_id } : {}),
        ...(name ? { name } : {}),
      });
      done();
      go(to(["models", model.model_id]));
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ hint) =>
    html`<div class="field" key=${kind + name}><label for=${id + name}>${label}</label>
      <input id=${id + name} type=${secrets.has(name) ? "password" : "text"} autocomplete="off" spellcheck="false" value=${values[name] ?? ""} aria-describedby=${`${id}${name}-hint`} onInput=${(/** @type {any} */ event) => setValues({ ...values, [name]: event.target.value })} />
      <p class="muted" id=${`${id}${name}-hint`}>${hint}</p>${messagesAt(problem, name)}</div>`;
  return html`<form class="fields" onSubmit=${register}>
    <div class="field"><label for=${`${id}kind`}>Where it comes from</label>
      <select id=${`${id}kind`} value=${kind} onChange=${(/** @type {any} */ event) => setKind(event.target.value)}>${Object.entries(kinds).map(([name, { label }]) => html`<option key=${name} value=${name}>${label}</option>`)}</select></div>
    ${fields.map(([name, label, hint]) => field(name, label, hint))}
    ${field("model_id", "Id (optional)", "By which packages require it. Without one it is called after its source.")}
    ${field("name", "Name (optional)", "For people.")}
    ${problem !== null && html`<p role="alert" class="wrong wrapped" dir="auto">${shown(problem.message, 1_000)}</p>`}
    <div class="actions end"><button type="button" onClick=${close}>Close</button><button type="submit" class="primary" disabled=${isBusy}>Register</button></div>
  </form>`;
}

/** What is wrong with a field. @param {any} problem @param {string} name */
const messagesAt = (problem, name) =>
  (problem?.errors ?? [])
    .filter((/** @type {any} */ { path }) => path.split("/").at(-1) === name)
    .map(
      (/** @type {any} */ { path, message }) =>
        html`<p key=${path} class="wrong" dir="auto">${shown(message, 400)}</p>`,
    );
