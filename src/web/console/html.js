// @ts-check
// Templates of this console: preact through htm, so that there is no build step. Text is only ever set as text.

import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export { Fragment, render } from "../vendor/preact.js";
export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-hooks.js";
export { batch, signal } from "../vendor/signals.js";

/** @type {(strings: TemplateStringsArray, ...values: unknown[]) => any} */
export const html = /** @type {any} */ (htm).bind(h);
