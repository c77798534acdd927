// @ts-check
// The configuration that the run began with, and who has set each value.

import { get } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Empty, Problem, shown } from "../parts/pieces.js";

/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isNested = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {unknown} value @param {readonly string[]} [path] @returns {{ path: readonly string[], value: unknown }[]} */
const leavesOf = (value, path = []) =>
  isNested(value)
    ? Object.entries(value).flatMap(([name, one]) => leavesOf(one, [...path, name]))
    : [{ path, value }];

/** @param {unknown} value @param {readonly string[]} path */
const at = (value, path) => path.reduce((one, name) => (isNested(one) ? one[name] : undefined), value);

/**
 * @param {unknown} configuration @param {unknown} overrides of the run @param {unknown} defaults of the blueprint, as it is now
 * @returns {{ path: string, value: unknown, setBy: string }[]}
 */
export const layersOf = (configuration, overrides, defaults) =>
  leavesOf(configuration)
    .filter(({ path }) => path.length > 0 && path[0] !== "$schema")
    .map(({ path, value }) => ({
      path: path.join("."),
      value,
      setBy:
        at(overrides, path) !== undefined
          ? "This run"
          : JSON.stringify(at(defaults, path)) === JSON.stringify(value)
            ? "Its blueprint"
            : "Its job",
    }));

/** @param {{ run: any }} properties */
export function Configuration({ run }) {
  const [read, setRead] = useState(
    /** @type {{ layers: ReturnType<typeof layersOf> } | { error: unknown } | null} */ (null),
  );
  useEffect(() => {
    const id = run.blueprint_id;
    Promise.all([
      get(`/runs/${encodeURIComponent(run.run_id)}/artifacts/config`),
      // One that is gone tells nothing.
      id === null ? null : get(`/blueprints/${encodeURIComponent(id)}`).catch(() => null),
    ]).then(
      ([configuration, blueprint]) =>
        setRead({ layers: layersOf(configuration, run.config_overrides, blueprint?.default_configuration) }),
      (error) => setRead({ error }),
    );
  }, []);
  if (read === null) return null;
  if ("error" in read) return html`<${Problem} error=${read.error} />`;
  if (read.layers.length === 0) return html`<${Empty}>It has none.</${Empty}>`;
  return html`<div class="rows"><table><thead><tr><th scope="col">Where</th><th scope="col">Value</th><th scope="col">Set by</th></tr></thead>
    <tbody>${read.layers.map(
      ({
        path,
        value,
        setBy,
      }) => html`<tr key=${path}><th scope="row"><code dir="auto" class="wrapped">${shown(path, 300)}</code></th>
        <td data-name="Value"><code dir="auto" class="wrapped">${shown(JSON.stringify(value), 2_000)}</code></td><td class="tight" data-name="Set by">${setBy}</td></tr>`,
    )}</tbody></table></div>`;
}
