// @ts-check
// Names of jobs by their ids. A name is read once.

import { get } from "./api.js";
import { useEffect, useState } from "./html.js";

/** @type {Map<string, Promise<string>>} */
const reading = new Map();
const known = new Map(/** @type {[string, string][]} */ ([]));

/** @param {readonly string[]} ids @returns {Promise<ReadonlyMap<string, string>>} of deleted jobs, their ids */
export async function jobNames(ids) {
  await Promise.all([...new Set(ids)].map(read));
  return known;
}

/** @param {string} id */
function read(id) {
  const found =
    reading.get(id) ??
    get(`/jobs/${encodeURIComponent(id)}`).then(
      ({ name }) => name ?? "",
      () => id,
    );
  reading.set(id, found);
  return found.then((name) => known.set(id, name));
}

/** The same for views. @param {readonly string[]} ids @returns {ReadonlyMap<string, string>} grows as names come */
export function useJobNames(ids) {
  const [, setCount] = useState(0);
  const missing = [...new Set(ids)].filter((id) => !known.has(id)).join(" ");
  useEffect(() => {
    if (missing !== "") void jobNames(missing.split(" ")).then(() => setCount((count) => count + 1));
  }, [missing]);
  return known;
}
