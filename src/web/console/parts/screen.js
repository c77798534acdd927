// @ts-check
// The frame of a view: one heading, which has the focus after a navigation, and what can be done.

import { html, useEffect, useRef } from "../html.js";
import { announce, Copy } from "./pieces.js";

/** The view that is shown now; a new one takes the focus. */
let isFirst = true;

/** @param {{ title: string, heading?: unknown, actions?: unknown, children?: unknown }} properties */
export function Screen({ title, heading, actions, children }) {
  const ref = useRef(/** @type {HTMLHeadingElement | null} */ (null));
  useEffect(() => {
    document.title = `${title} · Troupe`;
  }, [title]);
  useEffect(() => {
    // At the start of the page the browser has put the focus where it belongs.
    if (!isFirst) {
      ref.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
      announce(title);
    }
    isFirst = false;
  }, []);
  return html`<header class="head">
      <div class="naming"><h1 ref=${ref} tabindex="-1" dir="auto">${title}</h1>${heading}</div>
      <div class="actions">${actions}<${Copy} text=${() => location.href}>Copy link</${Copy}></div>
    </header>
    ${children}`;
}
