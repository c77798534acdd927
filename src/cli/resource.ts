// `troupe resource show` and `set`: what the machines have, and the limits of what commands may have of it.

import type { LimitsInput, Resource } from "../../sdk/src/index.ts";
import { printAnswer, UsageError } from "./command.ts";
import { idOf } from "./ids.ts";
import type { ServerCall } from "./session.ts";
import { bytes, cleanText, table } from "./text.ts";

export async function show(call: ServerCall): Promise<number> {
  const resource = await call.client.system.resource();
  return printAnswer(call, resource, () => resourceLines(resource));
}

export async function set(call: ServerCall): Promise<number> {
  const limits: LimitsInput = {
    ...percentOf(call),
    ...shareOf(call, "memory"),
    ...shareOf(call, "disk"),
    ...gpusOf(call),
  };
  const isWhole = call.flag("only") === true;
  if (!isWhole && Object.keys(limits).length === 0)
    throw new UsageError("Which limit? Give --cpu, --memory, --disk or --gpus; --only alone takes all back.");
  const { system } = call.client;
  const resource = await (isWhole ? system.setLimits(limits) : system.changeLimits(limits));
  return printAnswer(call, resource, () => resourceLines(resource));
}

export async function removeVolume(call: ServerCall): Promise<number> {
  const name = idOf(call, "volume");
  await call.client.system.removeVolume(name);
  return printAnswer(call, { volume: name, removed: true }, () => `${name} removed`);
}

const NONE = "none";
const PERCENT = /^(\d+(?:\.\d+)?)%$/;
const AMOUNT = /^(\d+(?:\.\d+)?) ?(B|KiB|MiB|GiB|TiB)?$/;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function percentOf(call: ServerCall): LimitsInput {
  const text = call.text("cpu");
  if (text === null) return {};
  if (text === NONE) return { cpu_percent: null };
  const percent = PERCENT.exec(text)?.[1];
  if (percent === undefined) throw new UsageError(`--cpu is a percentage, such as 80%, or ${NONE}.`);
  return { cpu_percent: Number(percent) };
}

function shareOf(call: ServerCall, name: "memory" | "disk"): LimitsInput {
  const text = call.text(name);
  if (text === null) return {};
  if (text === NONE) return { [`${name}_percent`]: null, [`${name}_bytes`]: null };
  const percent = PERCENT.exec(text)?.[1];
  if (percent !== undefined) return { [`${name}_percent`]: Number(percent) };
  const [, count, unit = "B"] = AMOUNT.exec(text) ?? [];
  if (count !== undefined)
    return { [`${name}_bytes`]: Math.round(Number(count) * 1024 ** UNITS.indexOf(unit)) };
  throw new UsageError(`--${name} is a percentage, such as 50%, an amount, such as 8GiB, or ${NONE}.`);
}

function gpusOf(call: ServerCall): LimitsInput {
  const text = call.text("gpus");
  if (text === null) return {};
  if (text === "all") return { gpu_indices: null };
  if (text === NONE) return { gpu_indices: [] };
  if (!/^\d+(,\d+)*$/.test(text))
    throw new UsageError("--gpus is a list of indices, such as 0,1, all or none.");
  return { gpu_indices: text.split(",").map(Number) };
}

const HEAD = ["NODE", "", "CORES", "MEMORY", "DISK", "GPUS"];

function resourceLines({ nodes, limits }: Resource): readonly string[] {
  const rows = nodes.flatMap(({ name, totals, effective, reserved, used }) => [
    [name, "has", ...cells(totals), gpus(totals.gpus.length)],
    ["", "allowed", ...cells(effective), gpus(effective.gpus.length)],
    ["", "reserved", ...cells(reserved), gpus(reserved.gpus)],
    ["", "used", ...cells(used), ""],
  ]);
  const inUse = nodes.flatMap(({ name, reserved: { ports, devices } }) => [
    ...(ports.length === 0 ? [] : [`Ports in use on ${name}: ${ports.join(", ")}.`]),
    ...(devices.length === 0 ? [] : [`Devices in use on ${name}: ${devices.join(", ")}.`]),
  ]);
  const volumes = nodes.flatMap(({ name, volumes: all, reserved }) => {
    const taken = new Set(reserved.volumes.map((one) => one.name));
    const shown = all.map((volume) => (taken.has(volume) ? `${volume} (in use)` : volume));
    return shown.length === 0 ? [] : [`Volumes on ${name}: ${shown.join(", ")}.`];
  });
  const set = Object.entries(limits).map(([limit, value]) => `${limit} ${[value].flat().join(",")}`);
  return [
    ...table(HEAD, rows),
    "",
    ...[...inUse, ...volumes].map(cleanText),
    `Limits of each machine: ${cleanText(set.join(", ")) || NONE}.`,
  ];
}

const cells = (of: Resource["used"]) => [String(of.cpu_cores), bytes(of.memory_bytes), bytes(of.disk_bytes)];

const gpus = (count: number) => (count === 0 ? "-" : String(count));
