// @ts-check
// The part of a run's time that is looked at: chosen in the timeline, and kept for logs and events by their addresses.

import { timeOfDay } from "../../dashboard/format.js";
import { html } from "../html.js";
import { parameter, setQuery } from "../router.js";

/** @returns {Record<string, string>} since and until, as ISO times, as far as they are chosen */
export function rangeOf() {
  const chosen = ["since", "until"].map((name) => [name, parameter(name)]);
  return Object.fromEntries(chosen.filter(([, text = ""]) => !Number.isNaN(Date.parse(text))));
}

/**
 * What happens at its last millisecond belongs to it: `until` of the API is the first that does not.
 *
 * @param {number} fromMs
 * @param {number} toMs
 */
export const setRange = (fromMs, toMs) =>
  setQuery({
    since: new Date(fromMs).toISOString(),
    until: new Date(Math.floor(toMs) + 1).toISOString(),
  });

/** Says which part is looked at, and shows all again. */
export function Range() {
  const { since, until } = rangeOf();
  if (since === undefined && until === undefined) return null;
  const words = `${since === undefined ? "the start" : timeOfDay(since)} to ${until === undefined ? "the end" : timeOfDay(until)}`;
  return html`<p class="chip"><span>From ${words}</span>
    <button type="button" class="flat" onClick=${() => setQuery({ since: "", until: "" })}>Show all</button></p>`;
}
