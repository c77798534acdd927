// `troupe config`: every setting with its value, secrets masked, and the OTEL_* variables of traces.

import { describeConfig, loadConfig } from "../app/config.ts";
import { describeTelemetry, telemetryLine } from "../observability/traces/settings.ts";
import { type Call, exitCodes } from "./command.ts";
import { configFor } from "./connection.ts";
import { cleanText, table } from "./text.ts";

export async function showConfig(call: Call): Promise<number> {
  const { terminal } = call;
  const rows = [...describeConfig(configFor(call, "client")), ...describeTelemetry(call.env)];
  if (call.flag("json")) terminal.print(JSON.stringify(rows));
  else {
    const cells = rows.map((row) => [row.variable, cleanText(row.value), row.from, row.meaning]);
    for (const line of table(["VARIABLE", "VALUE", "FROM", "MEANING"], cells)) terminal.print(line);
    terminal.print(telemetryLine(call.env));
  }
  const asServer = loadConfig(call.env, "up");
  if (asServer.kind === "invalid") {
    for (const problem of asServer.problems) terminal.note(`\`troupe up\` would refuse this: ${problem}`);
  }
  return exitCodes.success;
}
