// @ts-check
// Parts whose script is loaded when they are first shown: what few readers need waits for those.

import { html, useEffect, useState } from "../html.js";
import { Problem } from "./pieces.js";

/**
 * @param {() => Promise<any>} load resolves with the component
 * @param {string} [heading] of a whole page, which has one also where it cannot be loaded
 * @returns {any} a component that shows nothing until the script is there
 */
export function lazily(load, heading) {
  /** @type {any} */
  let loaded = null;
  return (/** @type {object} */ properties) => {
    const [Part, setPart] = useState(() => loaded);
    const [isFailed, setFailed] = useState(false);
    const begin = () => {
      setFailed(false);
      load().then(
        (part) => {
          loaded = part;
          setPart(() => part);
        },
        () => setFailed(true),
      );
    };
    useEffect(() => {
      if (loaded === null) begin();
    }, []);
    if (isFailed) {
      const error = new Error("This part of the console cannot be loaded. Check that the gateway runs.");
      return html`${heading !== undefined && html`<h1>${heading}</h1>`}<${Problem} error=${error} retry=${begin} />`;
    }
    return Part === null ? null : html`<${Part} ...${properties} />`;
  };
}
