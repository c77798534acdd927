// `troupe doctor` and `troupe config`: this machine, and the settings that hold on it.

import { describeConfig, loadConfig } from "../app/config.ts";
import type { Finding } from "../execution/machine.ts";
import { describeTelemetry, telemetryLine } from "../observability/traces/settings.ts";
import { type Call, exitCodes, printAnswer } from "./command.ts";
import { configFor } from "./connection.ts";
import type { Style } from "./terminal.ts";
import { cleanText, pad, table } from "./text.ts";

const styles: Readonly<Record<Finding["state"], Style>> = { ok: "green", warn: "yellow", fail: "red" };
const NAME_COLUMNS = 14;

export async function doctor(call: Call): Promise<number> {
  const loaded = loadConfig(call.env, "up");
  const findings: Finding[] =
    loaded.kind === "ok"
      ? [{ name: "configuration", state: "ok", text: "every setting is valid" }]
      : loaded.problems.map((problem) => ({
          name: "configuration",
          state: "fail",
          text: problem,
          fix: "`troupe config` lists every setting.",
        }));
  findings.push(...loaded.warnings.map((text) => ({ name: "configuration", state: "warn" as const, text })));
  // `troupe config` needs none of what the checks load.
  const { checkMachine } = await import("./doctor-checks.ts");
  findings.push(...(await checkMachine(loaded.kind === "ok" ? loaded.config : null)));
  printAnswer(call, findings, () =>
    findings.flatMap(({ name, state, text, fix }) => [
      `${call.terminal.paint(styles[state], pad(state, 4))}  ${pad(name, NAME_COLUMNS)}  ${cleanText(text)}`,
      ...(fix === undefined ? [] : [`      ${" ".repeat(NAME_COLUMNS)}  → ${fix}`]),
    ]),
  );
  return findings.some(({ state }) => state === "fail") ? exitCodes.failure : exitCodes.success;
}

/** Every setting with its value, secrets masked, and the OTEL_* variables of traces. */
export async function showConfig(call: Call): Promise<number> {
  const { terminal } = call;
  const rows = [...describeConfig(configFor(call, "client")), ...describeTelemetry(call.env)];
  printAnswer(call, rows, () => {
    const cells = rows.map((row) => [row.variable, cleanText(row.value), row.from, row.meaning]);
    return [...table(["VARIABLE", "VALUE", "FROM", "MEANING"], cells), telemetryLine(call.env)];
  });
  const asServer = loadConfig(call.env, "up");
  if (asServer.kind === "invalid") {
    for (const problem of asServer.problems) terminal.note(`\`troupe up\` would refuse this: ${problem}`);
  }
  return exitCodes.success;
}
