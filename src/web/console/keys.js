// @ts-check
// Keys for all views, the list of them (?), and the palette (Ctrl or Command and K).

import { html, signal, useEffect } from "./html.js";
import { pages } from "./page-list.js";
import { lazily } from "./parts/lazily.js";
import { go, parameter, place, to } from "./router.js";
import { shownRun } from "./run/shown-run.js";

const Palette = lazily(async () => (await import("./palette.js")).Palette);
const Help = lazily(async () => (await import("./keys-help.js")).Help);
const shownOver = signal(/** @type {"" | "palette" | "help"} */ (""));
const FOLLOW_MS = 1_200;

export function Keys() {
  useEffect(() => {
    let gPressedMs = Number.NEGATIVE_INFINITY;
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        shownOver.value = "palette";
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (performance.now() - gPressedMs < FOLLOW_MS) {
        const page = pages.find(({ key }) => key === event.key);
        if (page !== undefined) go(page.pattern === "/" ? to([]) : `${to([])}${page.pattern}`);
        gPressedMs = Number.NEGATIVE_INFINITY;
        return;
      }
      switch (event.key) {
        case "g":
          gPressedMs = performance.now();
          return;
        case "?":
          shownOver.value = "help";
          return;
        case "/":
          event.preventDefault();
          /** @type {HTMLElement | null} */ (document.querySelector("main input[type=search]"))?.focus();
          return;
        case "j":
        case "k":
          moveRow(event.key === "j" ? 1 : -1);
          return;
        case "[":
        case "]":
          moveFailure(event.key === "]" ? 1 : -1);
          return;
        case "x":
          tickRow();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const close = () => (shownOver.value = "");
  if (shownOver.value === "palette") return html`<${Palette} close=${close} />`;
  return shownOver.value === "help" ? html`<${Help} close=${close} />` : null;
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.closest("input:not([type=checkbox]), select, textarea, dialog, [contenteditable]") !== null;
}

/** Where the focus is. */
function tickRow() {
  const row = document.activeElement?.closest("tr");
  /** @type {HTMLElement | null | undefined} */ (row?.querySelector("input[type=checkbox]"))?.click();
}

/** The links that rows of a list begin with. */
const rowLinks = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll("main [data-row]")]);

/** @param {number} by */
function moveRow(by) {
  const links = rowLinks();
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

/** To the next row that tells of a failure; of a run, to what its next failed agent did. @param {number} by */
function moveFailure(by) {
  const run = shownRun.value;
  if (run === null) {
    const links = rowLinks();
    const hasFailed = (/** @type {HTMLElement | undefined} */ link) =>
      link?.closest("tr")?.querySelector('[data-state="failed"]') != null;
    let at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + by;
    while (at >= 0 && at < links.length && !hasFailed(links[at])) at += by;
    links[at]?.focus();
    return;
  }
  const failed = run.agents.filter(({ state }) => state === "failed").map(({ id }) => id);
  const at = failed.indexOf(parameter("agent"));
  const next = at < 0 ? failed.at(by > 0 ? 0 : -1) : failed[at + by];
  const tab = place.value.path.endsWith("/logs") ? "logs" : "events";
  if (next !== undefined) go(to(["runs", run.id, tab], { agent: next }));
}
