// @ts-check
// The palette: go to a page, to a run, a job or a blueprint by its name or id, to what an agent of this run did, and do what this page
// offers, which asks where it cannot be undone.

import { get } from "./api.js";
import { html, useEffect, useId, useState } from "./html.js";
import { pages } from "./page-list.js";
import { Dialog } from "./parts/dialog.js";
import { shown } from "./parts/pieces.js";
import { go, to } from "./router.js";
import { shownRun } from "./run/shown-run.js";

const SHOWN_MAX = 12;
/** What this page leads to and offers: views of a run, and buttons. */
const OFFERED = "main nav.tabs a, main .head .actions :is(a, button:enabled)";

/** @typedef {{ text: string, kind: string, open: () => void }} Target */

/** @param {string} text @param {string} kind @param {string} url @returns {Target} */
const place = (text, kind, url) => ({ text, kind, open: () => go(url) });

/** What can be found by its name. */
const lists = [
  {
    path: "/runs",
    target: (/** @type {any} */ { run_id: id, job_name: name, status }) =>
      place(`${shown(name, 60)} ${id}`.trim(), `Run, ${status}`, to(["runs", id])),
  },
  {
    path: "/jobs",
    target: (/** @type {any} */ { job_id: id, name }) =>
      place(`${shown(name, 60)} ${id}`.trim(), "Job", to(["jobs", id])),
  },
  {
    path: "/blueprints",
    target: (/** @type {any} */ { blueprint_id: id, name }) =>
      place(`${shown(name, 60)} ${id}`.trim(), "Blueprint", to(["blueprints", id])),
  },
];

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
  const [found, setFound] = useState(/** @type {Record<string, Target[]>} */ ({}));
  const [offered] = useState(() =>
    [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(OFFERED))].map((one) => ({
      text: one.innerText,
      kind: "Here",
      open: () => one.click(),
    })),
  );
  const listId = useId();
  useEffect(() => {
    for (const { path, target } of lists) {
      get(path, { page_size: 100 }).then(
        ({ items }) => setFound((before) => ({ ...before, [path]: items.map(target) })),
        // What cannot be read, as with a share, is not offered.
        () => {},
      );
    }
  }, []);
  const run = shownRun.value;
  /** @type {Target[]} */
  const targets = [
    ...pages.flatMap(({ name, pattern }) =>
      name === undefined ? [] : [place(name, "Page", pattern === "/" ? to([]) : `${to([])}${pattern}`)],
    ),
    ...offered,
    ...lists.flatMap(({ path }) => found[path] ?? []),
    ...(run?.agents ?? []).map(({ id }) =>
      place(id, "Agent", to(["runs", run?.id ?? "", "events"], { agent: id })),
    ),
    ...(/^run_\w+$/.test(text) ? [place(text, "Run", to(["runs", text]))] : []),
  ].filter((target) => isLike(target.text, text));
  const list = targets.slice(0, SHOWN_MAX);
  const at = Math.min(chosen, list.length - 1);
  const open = (/** @type {Target | undefined} */ target) => {
    if (target === undefined) return;
    close();
    target.open();
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
  return html`<${Dialog} title="Go to, or do" close=${close} class="palette">
    <input role="combobox" aria-label="What to go to or do" aria-expanded="true" aria-controls=${listId} aria-autocomplete="list"
      aria-activedescendant=${at < 0 ? undefined : `${listId}-${at}`} autofocus autocomplete="off" spellcheck=${false}
      value=${text} onInput=${(/** @type {any} */ event) => {
        setText(event.target.value);
        setChosen(0);
      }} onKeyDown=${onKey} />
    <ul id=${listId} class="plain" role="listbox" aria-label="What there is">
      ${list.map(
        (
          target,
          index,
        ) => html`<li key=${`${target.kind} ${target.text}`} id=${`${listId}-${index}`} role="option" aria-selected=${index === at} onClick=${() => open(target)}>
        <span dir="auto">${shown(target.text, 120)}</span><span class="muted">${target.kind}</span>
      </li>`,
      )}
    </ul>
    ${list.length === 0 && html`<p class="muted">Nothing is called so.</p>`}
  </${Dialog}>`;
}
