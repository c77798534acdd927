// axe-core in a page of any browser.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const path = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

interface Results {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** A script that defines `axe`. */
export const axeSource = () => readFile(path, "utf8");

/** An expression: a promise of what axe finds in the page as it is now. WCAG 2.2 A and AA, and best practices. */
export const RUN_AXE = "axe.run({ iframes: false })";

/** @param results of RUN_AXE @returns what is wrong, as lines */
export function problemsOf(results: unknown): readonly string[] {
  return (results as Results).violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`),
  );
}
