// @ts-check
// One thing done with many: how many they are is asked about before, and what could not be done is told of each after.

import { count } from "../../dashboard/format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Dialog } from "./dialog.js";
import { Bar, shown } from "./pieces.js";

const AT_ONCE = 6;

/**
 * @template Item
 * @typedef {object} Asked
 * @property {string} title
 * @property {() => Promise<readonly Item[]>} find those that it is to be done with
 * @property {(items: readonly Item[]) => string} question
 * @property {(items: readonly Item[]) => string} confirm what the button says that does it
 * @property {(item: Item) => Promise<unknown>} act does it with one
 * @property {(item: Item) => string} nameOf
 * @property {string} done such as "paused"
 * @property {boolean} [danger]
 * @property {() => void} after called when no more is done
 */

/**
 * A dialog for many, which stays when those that it is about leave the view.
 *
 * @returns {{ ask: (asked: Asked<any>) => void, dialog: any }}
 */
export function useMany() {
  const [asked, ask] = useState(/** @type {Asked<any> | null} */ (null));
  return { ask, dialog: asked && html`<${Many} asked=${asked} close=${() => ask(null)} />` };
}

/** @param {{ asked: Asked<any>, close: () => void }} properties */
function Many({ asked, close }) {
  const [items, setItems] = useState(/** @type {readonly any[] | null} */ (null));
  const [problem, setProblem] = useState("");
  const [ended, setEnded] = useState(/** @type {number | null} */ (null));
  const [isOver, setOver] = useState(false);
  const [failures, setFailures] = useState(/** @type {readonly { name: string, reason: string }[]} */ ([]));
  const isClosed = useRef(false);
  const closing = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    asked.find().then(setItems, (error) => setProblem(error.message));
    return () => {
      isClosed.current = true;
    };
  }, []);
  const run = async (/** @type {readonly any[]} */ all) => {
    setEnded(0);
    // The button that was pressed goes.
    closing.current?.focus();
    const found = await failuresOf(all, asked, { isClosed, told: setEnded });
    setFailures(found);
    setOver(true);
    asked.after();
  };
  const number = items?.length ?? 0;
  return html`<${Dialog} title=${asked.title} close=${close}>
    ${items === null && problem === "" && html`<p class="muted">Looking for them …</p>`}
    ${problem !== "" && html`<p role="alert" class="wrong" dir="auto">${problem}</p>`}
    ${items !== null && ended === null && html`<p>${asked.question(items)}</p>`}
    ${ended !== null && !isOver && html`<${Bar} value=${ended} total=${number} label="Of these, done" /><p class="muted number">${count(ended)} of ${count(number)}. Closing leaves the rest as it is.</p>`}
    ${isOver && html`<p role="status">${count(number - failures.length)} of ${count(number)} ${asked.done}.</p>`}
    ${
      failures.length > 0 &&
      html`<h3>What could not be done</h3><div class="failures" tabindex="0" role="group" aria-label="What could not be done"><ul>${failures.map(
        ({ name, reason }) =>
          html`<li key=${name}><code dir="auto">${shown(name, 120)}</code> <span dir="auto">${shown(reason, 400)}</span></li>`,
      )}</ul></div>`
    }
    <div class="actions end">
      <button type="button" ref=${closing} onClick=${close}>Close</button>
      ${items !== null && number > 0 && ended === null && html`<button type="button" class=${asked.danger ? "danger" : ""} onClick=${() => void run(items)}>${asked.confirm(items)}</button>`}
    </div>
  </${Dialog}>`;
}

/**
 * Begins them in order, a few at a time; none is begun any more once the dialog is closed.
 *
 * @param {readonly any[]} items @param {Asked<any>} asked
 * @param {{ isClosed: { current: boolean }, told: (ended: number) => void }} under
 */
async function failuresOf(items, { act, nameOf }, { isClosed, told }) {
  /** @type {{ name: string, reason: string }[]} */
  const failures = [];
  const waiting = items[Symbol.iterator]();
  let ended = 0;
  const work = async () => {
    for (const item of waiting) {
      if (isClosed.current) return;
      await act(item).catch((error) => failures.push({ name: nameOf(item), reason: error.message }));
      told(++ended);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failures;
}
