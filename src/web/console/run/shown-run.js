// @ts-check
// The run that is looked at, for what is reached from everywhere: the palette and keys.

import { signal } from "../html.js";

/** Null on other pages. */
export const shownRun = signal(/** @type {import("./run-source.js").RunSource | null} */ (null));
