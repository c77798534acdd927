// `troupe doctor`: every check as one line, and how to mend what is wrong.

import { loadConfig } from "../app/config.ts";
import type { Finding } from "../doctor/machine.ts";
import { type Call, exitCodes } from "./command.ts";
import { checkMachine } from "./doctor-checks.ts";
import type { Style } from "./terminal.ts";
import { cleanText, pad } from "./text.ts";

const styles: Readonly<Record<Finding["state"], Style>> = { ok: "green", warn: "yellow", fail: "red" };
const NAME_COLUMNS = 14;

export async function doctor(call: Call): Promise<number> {
  const { terminal } = call;
  const loaded = loadConfig(call.env, "up");
  const findings: Finding[] =
    loaded.kind === "ok"
      ? [{ name: "configuration", state: "ok", text: "every setting is valid" }]
      : loaded.problems.map((problem) => ({
          name: "configuration",
          state: "fail",
          text: problem,
          mend: "`troupe config` lists every setting.",
        }));
  findings.push(...loaded.warnings.map((text) => ({ name: "configuration", state: "warn" as const, text })));
  findings.push(...(await checkMachine(loaded.kind === "ok" ? loaded.config : null)));
  if (call.flag("json")) terminal.print(JSON.stringify(findings));
  else {
    for (const { name, state, text, mend } of findings) {
      terminal.print(
        `${terminal.paint(styles[state], pad(state, 4))}  ${pad(name, NAME_COLUMNS)}  ${cleanText(text)}`,
      );
      if (mend !== undefined) terminal.print(`      ${" ".repeat(NAME_COLUMNS)}  → ${mend}`);
    }
  }
  return findings.some(({ state }) => state === "fail") ? exitCodes.failure : exitCodes.success;
}
