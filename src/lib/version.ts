// The program's version, from the one place that has it.

import { readFileSync } from "node:fs";

export function programVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return String((JSON.parse(text) as { version: unknown }).version);
}
