// @ts-check
// Questions before what cannot be undone. The browser's own dialog keeps the focus inside, and gives it back.

import { html, useEffect, useId, useRef, useState } from "../html.js";

/**
 * @param {{ title: string, close: () => void, class?: string, children?: unknown }} properties
 */
export function Dialog({ title, close, class: name = "", children }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useEffect(() => {
    const dialog = /** @type {HTMLDialogElement} */ (ref.current);
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return html`<dialog ref=${ref} class=${`dialog ${name}`} aria-labelledby=${id} onCancel=${close} onClick=${(/** @type {MouseEvent} */ event) => event.target === ref.current && close()}>
    <div class="dialog-body"><h2 id=${id}>${title}</h2>${children}</div>
  </dialog>`;
}

/**
 * A button that asks before it acts, if there is something to know before.
 *
 * @param {{ label: string, question?: string, act: () => Promise<void>, danger?: boolean, disabled?: boolean }} properties
 */
export function Action({ label, question, act, danger = false, disabled = false }) {
  const [isAsking, setAsking] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const run = async () => {
    setBusy(true);
    setProblem("");
    try {
      await act();
      setAsking(false);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      if (question === undefined) setAsking(true);
    }
    setBusy(false);
  };
  const close = () => {
    setAsking(false);
    setProblem("");
  };
  const name = danger ? "danger" : "";
  return html`<button type="button" class=${name} disabled=${disabled || isBusy} onClick=${question === undefined ? run : () => setAsking(true)}>${label}</button>
    ${
      isAsking &&
      html`<${Dialog} title=${label} close=${close}>
      ${question === undefined ? null : html`<p>${question}</p>`}
      ${problem === "" ? null : html`<p role="alert" class="wrong" dir="auto">${problem}</p>`}
      <div class="actions end">
        <button type="button" onClick=${close}>Close</button>
        <button type="button" class=${name} disabled=${isBusy} onClick=${run}>${question === undefined ? "Try again" : label}</button>
      </div>
    </${Dialog}>`
    }`;
}
