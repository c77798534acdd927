// @ts-check
// What the server says of a body while it is typed.

import { ApiProblem, post } from "../api.js";
import { useEffect, useState } from "../html.js";

const TYPED_MS = 400;

/**
 * @param {string | undefined} path that checks; undefined: nothing does
 * @param {object} body
 * @returns {{ errors: any[], warnings: any[], isCurrent: boolean, tell: (errors: any[]) => void }}
 *   isCurrent: the server has seen just this body; tell: shows the errors of another answer until the next check
 */
export function useChecked(path, body) {
  const [found, setFound] = useState({
    errors: /** @type {any[]} */ ([]),
    warnings: /** @type {any[]} */ ([]),
    of: /** @type {string | null} */ (null),
  });
  const json = JSON.stringify(body);
  useEffect(() => {
    if (path === undefined) return;
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const read = await post(path, body).then(
        ({ errors, warnings }) => ({ errors, warnings, of: json }),
        // What could not be asked is neither accepted nor refused.
        (error) => ({ errors: error instanceof ApiProblem ? error.errors : [], warnings: [], of: null }),
      );
      if (isCurrent) setFound(read);
    }, TYPED_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [path, json]);
  const { errors, warnings, of } = found;
  const tell = (/** @type {any[]} */ told) => setFound({ errors: told, warnings: [], of: null });
  return { errors, warnings, isCurrent: of === json, tell };
}
