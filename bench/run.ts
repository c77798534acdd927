// npm run bench: measures a server of the runtime API, and prints a table. Without arguments it starts this program
// on an empty home; with URLs it measures those, side by side.
//
//   npm run bench                                  this program
//   npm run bench -- URL                           another server of the same API
//   npm run bench -- URL URL                       two servers, in turn
//   npm run bench -- --only pair,list              some of the measurements
//   npm run bench -- --postgres                    this program on PostgreSQL, one node and two
//   npm run bench -- --peers                       this program and other engines, see bench/peers/README.md

import { parseArgs } from "node:util";
import { measureCommands } from "./commands.ts";
import { measureConsole } from "./console.ts";
import { measureLlm } from "./llm.ts";
import { loadTable } from "./load.ts";
import { measureLogs } from "./logs.ts";
import { measureModels } from "./models.ts";
import { measureProgram, startMeasured } from "./program.ts";
import { measureSandboxes } from "./sandbox.ts";
import { measureSandboxNetwork } from "./sandbox-network.ts";
import { measureSchedules } from "./schedules.ts";
import { measureSize } from "./size.ts";
import { measureSlowDisk } from "./slow-disk.ts";
import { measureStalls } from "./stalls.ts";
import { measureLargeStalls } from "./stalls-large.ts";
import { printTable } from "./table.ts";
import { measureTriggerEvents } from "./trigger-events.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string" },
    jobs: { type: "string", default: "3000" },
    peers: { type: "boolean", default: false },
    postgres: { type: "boolean", default: false },
  },
});
const only = values.only?.split(",") ?? null;

if (values.peers) {
  const { comparePeers } = await import("./peers/run.ts");
  await comparePeers();
  process.exit();
}

if (values.postgres) {
  const { measurePostgres } = await import("./postgres.ts");
  printTable([{ name: "on PostgreSQL", figures: await measurePostgres() }]);
  process.exit();
}

const columns: { name: string; figures: Map<string, string> }[] = [];
if (positionals.length === 0) {
  await using program = await startMeasured();
  const figures = await loadTable(program.api, { only, jobs: Number(values.jobs) });
  for (const [name, value] of await measureProgram(program, only)) figures.set(name, value);
  for (const [name, value] of await measureCommands(only)) figures.set(name, value);
  for (const [name, value] of await measureSandboxes(only)) figures.set(name, value);
  for (const [name, value] of await measureSandboxNetwork(only)) figures.set(name, value);
  for (const [name, value] of await measureLogs(only)) figures.set(name, value);
  for (const [name, value] of await measureStalls(only)) figures.set(name, value);
  for (const [name, value] of await measureSlowDisk(only)) figures.set(name, value);
  for (const [name, value] of await measureLargeStalls(only)) figures.set(name, value);
  for (const [name, value] of await measureSize(only)) figures.set(name, value);
  for (const [name, value] of await measureSchedules(only)) figures.set(name, value);
  for (const [name, value] of await measureTriggerEvents(only)) figures.set(name, value);
  for (const [name, value] of await measureLlm(only)) figures.set(name, value);
  for (const [name, value] of await measureConsole(only)) figures.set(name, value);
  for (const [name, value] of await measureModels(only)) figures.set(name, value);
  columns.push({ name: "this program", figures });
} else {
  for (const url of positionals) {
    columns.push({ name: url, figures: await loadTable(url, { only, jobs: Number(values.jobs) }) });
  }
}
printTable(columns);
