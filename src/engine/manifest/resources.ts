// What of its machine an executor's command is to have for itself: `resources` of its node.

import { isObject } from "../json.ts";
import {
  type Claim,
  type Demand,
  type NamedDemand,
  type PortNeed,
  portClaim,
  portVariable,
  type VolumeNeed,
  volumeClaim,
} from "../resources.ts";
import type { Fields, Range } from "./fields.ts";
import { quoted } from "./problems.ts";

const MiB = 1024 ** 2;

/** In thousandths at least. */
export const CPU_RANGE: Range = { min: 0.001, max: 100_000 };
export const MEBIBYTES_RANGE: Range = { min: 1, max: 2 ** 30 };
export const GPU_RANGE: Range = { min: 1, max: 256 };

export const portRange: Range = { min: 1, max: 65_535 };
export const PORTS_MAX = 16;
export const PORT_LABEL = /^[a-z][a-z0-9_-]{0,63}$/;

export const VOLUMES_MAX = 16;
export const VOLUME_NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;

export const DEVICES_MAX = 16;
export const DEVICE = /^\/dev(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._:@+-]{1,255}){1,8}$/;

const names = ["cpu", "memory_mb", "disk_mb", "gpu", "ports", "volumes", "devices"] as const;

/** `resources` of a node or of the manifest; null when there is none, or a list, which declares resources of another kind. */
export function resourcesOf(holder: Fields): Fields | null {
  const given = holder.raw("resources");
  if (given === undefined || Array.isArray(given)) return null;
  if (isObject(given)) return holder.object("resources");
  holder.reportType("resources", "an object or a list", given);
  return null;
}

/** What a node says of the machine, read once. */
export interface NodeResources {
  /** What its command is to have; null: nothing. */
  readonly demand: Demand | null;
  /** All that it names. */
  readonly ports: readonly PortNeed[];
  readonly volumes: readonly VolumeNeed[];
}

const none: NodeResources = { demand: null, ports: [], volumes: [] };

export function readNodeResources(node: Fields): NodeResources {
  const fields = resourcesOf(node);
  if (fields === null) return none;
  const asked = names.filter((name) => fields.raw(name) !== undefined);
  if (asked.length === 0) return none;
  if (node.raw("agent_type") !== "executor") {
    for (const name of asked)
      fields.report(name, "no_command", "needs a command that has it: only executors reserve resources");
  }
  const declared = readPorts(fields);
  const amounts = {
    cpuMillis: Math.ceil(fields.number("cpu", CPU_RANGE, 0) * 1_000),
    memoryBytes: fields.integer("memory_mb", MEBIBYTES_RANGE, 0) * MiB,
    diskBytes: fields.integer("disk_mb", MEBIBYTES_RANGE, 0) * MiB,
    gpus: fields.integer("gpu", GPU_RANGE, 0),
  };
  const volumes = readVolumes(fields);
  const named = namedDemand(
    declared.filter(({ isReserved }) => isReserved),
    [...volumes.map(volumeClaim), ...readDevices(fields)],
  );
  const isAsking = named !== null || Object.values(amounts).some((amount) => amount > 0);
  return {
    demand: isAsking ? { ...amounts, ...(named !== null && { named }) } : null,
    ports: declared.map(({ label, port }) => ({ label, port })),
    volumes,
  };
}

interface DeclaredPort extends PortNeed {
  readonly isReserved: boolean;
}

function readPorts(resources: Fields): readonly DeclaredPort[] {
  const variables = new Set<string>();
  const numbers = new Set<number>();
  return resources.objects("ports", PORTS_MAX, (fields) => {
    const label = fields.checked(
      "label",
      fields.requiredName("label"),
      PORT_LABEL,
      "invalid_label",
      'a label begins with a letter a to z, and at most 63 of a to z, 0 to 9, "_" and "-" follow',
    );
    const port = fields.raw("port") === "auto" ? null : fields.integer("port", portRange, null);
    const isReserved = fields.boolean("reserve", true);
    if (label === null) return null;
    if (port === null && !isReserved)
      fields.report("port", "missing", 'is missing: only a port that is reserved may be "auto"');
    if (variables.has(portVariable(label))) {
      const text = `is ${quoted(label)}, and another port of the node has SVC_${portVariable(label)} already`;
      fields.report("label", "duplicate", text);
    }
    variables.add(portVariable(label));
    if (port !== null && numbers.has(port))
      fields.report("port", "duplicate", `is ${port}, which another label of the node has already`);
    if (port !== null) numbers.add(port);
    return { label, port, isReserved };
  });
}

function readVolumes(resources: Fields): readonly VolumeNeed[] {
  const names = new Set<string>();
  const paths: string[] = [];
  return resources.objects("volumes", VOLUMES_MAX, (fields) => {
    const text = 'it begins with a to z or a digit, and at most 63 of these, ".", "_" and "-" follow';
    const name = fields.checked("name", fields.requiredName("name"), VOLUME_NAME, "invalid_name", text);
    if (name !== null && names.has(name))
      fields.report("name", "duplicate", `is ${quoted(name)}, which another volume of the node is already`);
    names.add(name ?? "");
    const path = readVolumePath(fields, paths);
    const isReadOnly = fields.boolean("read_only", false);
    const mebibytes = fields.integer("size_mb", MEBIBYTES_RANGE, null);
    if (name === null || path === null) return null;
    paths.push(path);
    return { name, path, isReadOnly, bytesMax: mebibytes === null ? null : mebibytes * MiB };
  });
}

/** @param others of volumes, none of which may be in another one */
function readVolumePath(fields: Fields, others: readonly string[]): string | null {
  if (!fields.isGiven("path", "a path in the command's working folder")) return null;
  const given = fields.relativePath("path");
  if (given === null) return null;
  const path = given
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/");
  const isInside = (inner: string, outer: string) => `${inner}/`.startsWith(`${outer}/`);
  const other = others.find((one) => isInside(one, path) || isInside(path, one));
  if (path !== "" && !path.split("/").includes("..") && other === undefined) return path;
  const why =
    other === undefined ? "has to be" : `is, or holds, or is in "${other}" of another volume: it has to be`;
  fields.report(
    "path",
    "invalid_path",
    `is ${quoted(given)}: it ${why} a folder of its own in the working folder`,
  );
  return null;
}

function readDevices(resources: Fields): readonly Claim[] {
  const devices = new Set<string>();
  const text = 'it must be the path of a device, such as "/dev/ttyUSB0", without "." and ".." in it';
  resources.list("devices", DEVICES_MAX).forEach((value, i) => {
    const path = resources.checked(
      ["devices", i],
      resources.checkedPath(["devices", i], value),
      DEVICE,
      "invalid_device",
      text,
    );
    if (path === null) return;
    if (devices.has(path))
      resources.report(["devices", i], "duplicate", `is ${quoted(path)} for the second time`);
    devices.add(path);
  });
  return [...devices].map((name) => ({ kind: "device", name, isShared: false }));
}

function namedDemand(ports: readonly PortNeed[], others: readonly Claim[]): NamedDemand | null {
  const numbers = ports.flatMap(({ port }) => (port === null ? [] : [portClaim(port)]));
  const freePorts = ports.length - numbers.length;
  const claims = [...numbers, ...others];
  return claims.length + freePorts === 0 ? null : { claims, freePorts };
}
