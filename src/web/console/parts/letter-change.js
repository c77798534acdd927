// @ts-check
// A message that was not processed is sent again, as it is or changed: what changes is shown before.

import { post } from "../api.js";
import { html, useId, useState } from "../html.js";
import { Action, Dialog } from "./dialog.js";
import { Diff } from "./diff.js";

/** @param {any} letter */
export const retryPath = ({ run_id: runId, dead_letter_id: id }) =>
  `/runs/${encodeURIComponent(runId)}/dead-letters/${encodeURIComponent(id)}/retry`;

/** @param {{ letter: any, again: () => void }} properties */
export function Resend({ letter, again }) {
  const send = async (/** @type {object} */ body) => {
    await post(retryPath(letter), body);
    again();
  };
  return html`<${Action} label="Send again" act=${() => send({})} /><${ChangeAndSend} body=${letter.message.body} send=${send} />`;
}

/** @param {{ body: unknown, send: (change: { body: unknown }) => Promise<void> }} properties */
function ChangeAndSend({ body, send }) {
  const [isShown, setShown] = useState(false);
  const close = () => setShown(false);
  return html`<button type="button" onClick=${() => setShown(true)}>Change and send …</button>
    ${isShown && html`<${Form} body=${body} send=${send} close=${close} />`}`;
}

/** @param {{ body: unknown, send: (change: { body: unknown }) => Promise<void>, close: () => void }} properties */
function Form({ body, send, close }) {
  const id = useId();
  const [text, setText] = useState(JSON.stringify(body, null, 2));
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const { value, error } = parsed(text);
  const isChanged = error === null && JSON.stringify(value) !== JSON.stringify(body);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await send({ body: value });
      close();
    } catch (refusal) {
      setProblem(refusal instanceof Error ? refusal.message : String(refusal));
      setBusy(false);
    }
  };
  return html`<${Dialog} title="Change the message and send it" class="broad" close=${close}>
    <form onSubmit=${submit}>
      <p class="muted">It goes to the same agent under its type. Its own body stays in its record, with who has changed it. ******** keeps the secret that is there.</p>
      <div class="field below"><label for=${id}>Body, as JSON</label>
        <textarea id=${id} class="json" rows="10" spellcheck=${false} value=${text} aria-invalid=${error !== null}
          onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
        <p class="wrong" aria-live="polite">${error ?? ""}</p></div>
      ${error === null && html`<h3>What changes</h3><${Diff} before=${body} after=${value} names=${["As it came", "As it is sent"]} same="Nothing yet." />`}
      <p role="alert" class="wrong" dir="auto">${problem}</p>
      <div class="actions end"><button type="button" onClick=${close}>Close</button>
        <button type="submit" disabled=${isBusy || !isChanged}>Send the changed message</button></div>
    </form>
  </${Dialog}>`;
}

/** @param {string} json @returns {{ value: unknown, error: string | null }} */
function parsed(json) {
  try {
    return { value: JSON.parse(json), error: null };
  } catch (error) {
    return { value: null, error: `This is no JSON yet: ${error instanceof Error ? error.message : ""}` };
  }
}
