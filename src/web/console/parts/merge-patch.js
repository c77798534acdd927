// @ts-check
// JSON merge patches (RFC 7396), as the server applies them to configurations.

import { isObject } from "../../dashboard/event.js";

/** An object that is merged key by key; a reference to a variable is one value. @param {unknown} value @returns {value is Record<string, any>} */
const isLayer = (value) =>
  isObject(value) &&
  !(
    typeof (/** @type {any} */ (value).$env) === "string" &&
    Object.keys(/** @type {any} */ (value)).length === 1
  );

/** The JSON merge patch (RFC 7396) from one object to another. @param {Record<string, any>} before @param {Record<string, any>} after @returns {Record<string, any>} */
export function patchOf(before, after) {
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const changed = Object.entries(after).filter(
    ([name, value]) => !Object.hasOwn(before, name) || JSON.stringify(before[name]) !== JSON.stringify(value),
  );
  return Object.fromEntries([
    ...gone.map((name) => /** @type {[string, any]} */ ([name, null])),
    ...changed.map(([name, value]) => {
      const old = Object.hasOwn(before, name) ? before[name] : undefined;
      return /** @type {[string, any]} */ ([
        name,
        isLayer(old) && isLayer(value) ? patchOf(old, value) : value,
      ]);
    }),
  ]);
}

/** @param {unknown} target @param {Record<string, any>} patch @returns {Record<string, any>} as the server applies it */
export function patched(target, patch) {
  const entries = new Map(isLayer(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) entries.delete(name);
    else entries.set(name, isLayer(value) ? patched(entries.get(name), value) : value);
  }
  return Object.fromEntries(entries);
}
