// @ts-check
// The palette: go to a page, or to a run by its id or its job's name.

import { get } from "./api.js";
import { html, useEffect, useId, useState } from "./html.js";
import { pages } from "./page-list.js";
import { Dialog } from "./parts/dialog.js";
import { shown } from "./parts/pieces.js";
import { go, to } from "./router.js";

const SHOWN_MAX = 12;

/** @typedef {{ text: string, kind: string, url: string }} Target */

/** Whether the letters occur in their order. @param {string} text @param {string} letters */
export function isLike(text, letters) {
  const found = text.toLowerCase();
  let at = 0;
  for (const letter of letters.toLowerCase().replaceAll(" ", "")) {
    at = found.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

/** @param {{ close: () => void }} properties */
export function Palette({ close }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const [runs, setRuns] = useState(/** @type {Target[]} */ ([]));
  const listId = useId();
  useEffect(() => {
    const read = async () => {
      const { items } = await get("/runs", { page_size: 100 });
      setRuns(
        items.map((/** @type {any} */ run) => ({
          text: `${shown(run.job_name, 60)} ${run.run_id}`.trim(),
          kind: `Run, ${run.status}`,
          url: to(["runs", run.run_id]),
        })),
      );
    };
    read().catch(() => {});
  }, []);
  /** @type {Target[]} */
  const targets = [
    ...pages.flatMap(({ name, pattern }) =>
      name === undefined
        ? []
        : [{ text: name, kind: "Page", url: pattern === "/" ? to([]) : `${to([])}${pattern}` }],
    ),
    ...runs,
    ...(/^run_\w+$/.test(text) ? [{ text, kind: "Run", url: to(["runs", text]) }] : []),
  ].filter((target) => isLike(target.text, text));
  const list = targets.slice(0, SHOWN_MAX);
  const at = Math.min(chosen, list.length - 1);
  const open = (/** @type {Target | undefined} */ target) => {
    if (target === undefined) return;
    close();
    go(target.url);
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) {
      event.preventDefault();
      setChosen(Math.max(0, Math.min(list.length - 1, at + by)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(list[at]);
    }
  };
  return html`<${Dialog} title="Go to" close=${close} class="palette">
    <input role="combobox" aria-label="Page or run" aria-expanded="true" aria-controls=${listId} aria-autocomplete="list"
      aria-activedescendant=${at < 0 ? undefined : `${listId}-${at}`} autofocus autocomplete="off" spellcheck=${false}
      value=${text} onInput=${(/** @type {any} */ event) => {
        setText(event.target.value);
        setChosen(0);
      }} onKeyDown=${onKey} />
    <ul id=${listId} class="plain" role="listbox" aria-label="Pages and runs">
      ${list.map(
        (
          target,
          index,
        ) => html`<li key=${target.url + target.kind} id=${`${listId}-${index}`} role="option" aria-selected=${index === at} onClick=${() => open(target)}>
        <span dir="auto">${target.text}</span><span class="muted">${target.kind}</span>
      </li>`,
      )}
    </ul>
    ${list.length === 0 && html`<p class="muted">Nothing is called so.</p>`}
  </${Dialog}>`;
}
