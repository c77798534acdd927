// @ts-check
// Where in the console the reader is. Every state of a view is in the address, so that Back, reloading and sent links work.

import { signal } from "./html.js";

export const ROOT = "/console";

/** @typedef {{ path: string, query: URLSearchParams }} Place */

/** @returns {Place} */
const read = () => ({
  path: location.pathname.replace(/\/+$/, "") || ROOT,
  query: new URLSearchParams(location.search),
});

export const place = signal(read());

/** Goes to another address of the console. @param {string} url @param {{ replace?: boolean }} [how] */
export function go(url, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  place.value = read();
}

/**
 * Changes parameters of the address; an empty value removes one.
 *
 * @param {Record<string, string | null | undefined>} changes
 * @param {{ replace?: boolean }} [how] replace: Back does not undo it, as for each letter of a search
 */
export function setQuery(changes, how) {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(`${place.value.path}${text === "" ? "" : `?${text}`}`, how);
}

/** @param {string} name */
export const parameter = (name) => place.value.query.get(name) ?? "";

/**
 * The address of a page.
 *
 * @param {string[]} segments below the root, as they are
 * @param {Record<string, string>} [query]
 */
export function to(segments, query = {}) {
  const text = new URLSearchParams(query).toString();
  return [ROOT, ...segments.map(encodeURIComponent)].join("/") + (text === "" ? "" : `?${text}`);
}

/**
 * @param {string} path
 * @param {string} pattern such as /runs/:id/:tab; a last segment with ? may be missing
 * @returns {Record<string, string> | null} the parameters
 */
export function matched(path, pattern) {
  const given = path.slice(ROOT.length).split("/").filter(Boolean);
  const wanted = pattern.split("/").filter(Boolean);
  if (given.length > wanted.length) return null;
  /** @type {Record<string, string>} */
  const parameters = {};
  for (const [index, part] of wanted.entries()) {
    const segment = given[index];
    if (segment === undefined) {
      if (!part.endsWith("?")) return null;
    } else if (part.startsWith(":")) parameters[part.slice(1).replace("?", "")] = decoded(segment);
    else if (part !== segment) return null;
  }
  return parameters;
}

/** @param {string} segment */
function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Links to the console change the view; others leave it. */
export function listen() {
  addEventListener("popstate", () => {
    place.value = read();
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link === null || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname !== ROOT && !link.pathname.startsWith(`${ROOT}/`)) return;
    if (link.hash !== "" && link.pathname === location.pathname) return;
    event.preventDefault();
    go(link.href);
  });
}
