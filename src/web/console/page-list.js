// @ts-check
// The views of the console. A view's script is loaded when somebody goes there.

/**
 * @typedef {object} PageEntry
 * @property {string} pattern of the path below /console
 * @property {string} [name] in the rail; without one it is reached from other views
 * @property {string} [key] pressed after g
 * @property {() => Promise<{ Page: any }>} load
 */

/** @type {readonly PageEntry[]} */
export const pages = [
  { pattern: "/", load: () => import("./pages/runs.js") },
  { pattern: "/runs", name: "Runs", key: "r", load: () => import("./pages/runs.js") },
  { pattern: "/runs/:id/:tab?", load: () => import("./run/run-page.js") },
];
