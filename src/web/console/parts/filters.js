// @ts-check
// Filters of a list. What is chosen is in the address.

import { html, useId, useRef } from "../html.js";
import { parameter, setQuery } from "../router.js";
import { shown } from "./pieces.js";

const TYPED_MS = 250;

/** @param {{ label: string, children?: unknown }} properties */
export const Filters = ({ label, children }) =>
  html`<form class="filters" aria-label=${label} onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>${children}</form>`;

/**
 * One of several values, or any.
 *
 * @param {{ name: string, label: string, values: readonly (string | readonly [string, string])[], any?: string }} properties
 *   name: of the parameter; values: with the words for people where those are others
 */
export function Choice({ name, label, values, any = "Any" }) {
  const id = useId();
  return html`<div><label for=${id}>${label}</label>
    <select id=${id} value=${parameter(name)} onChange=${(/** @type {any} */ event) => setQuery({ [name]: event.target.value })}>
      <option value="">${any}</option>
      ${values.map((one) => {
        const [value, words] = typeof one === "string" ? [one, one] : one;
        return html`<option key=${value} value=${value}>${shown(words, 80)}</option>`;
      })}
    </select></div>`;
}

/** A text; Back does not undo each letter. @param {{ name: string, label: string }} properties */
export function Search({ name, label }) {
  const id = useId();
  const typed = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const type = (/** @type {any} */ event) => {
    clearTimeout(typed.current);
    typed.current = setTimeout(() => setQuery({ [name]: event.target.value }, { replace: true }), TYPED_MS);
  };
  return html`<div class="wide"><label for=${id}>${label}</label><input id=${id} type="search" autocomplete="off" spellcheck=${false} value=${parameter(name)} onInput=${type} /></div>`;
}

/** What can only be chosen elsewhere, by a link. @param {{ name: string, label: string, text?: string }} properties */
export function Chosen({ name, label, text }) {
  const value = parameter(name);
  if (value === "") return null;
  return html`<p class="chip"><span dir="auto">${label}: ${shown(text ?? value, 60)}</span>
    <button type="button" class="flat" onClick=${() => setQuery({ [name]: "" })}>Show all</button></p>`;
}
