// The policy of a sandboxed node: `sandbox` in its config, or a file of the payload with the same fields.
//
// - Unlike elsewhere in a manifest, a field that nobody knows is a mistake: a misspelt limit would be none.
// - Whether what it names is on a machine, only that machine knows.

import { isWithheldVariable } from "../graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../json.ts";
import { SANDBOX_WORKSPACE, type SandboxLimits, type SandboxPolicy } from "../sandbox.ts";
import { Fields, kindOf, type Range } from "./fields.ts";
import { type ManifestProblem, Problems, quoted } from "./problems.ts";
import { DEVICE, DEVICES_MAX, MEBIBYTES_RANGE } from "./resources.ts";

const MiB = 1024 ** 2;

export const HOSTS_MAX = 256;
export const READ_ONLY_MAX = 64;
export const VARIABLES_MAX = 256;
export const PROCESSES_RANGE: Range = { min: 8, max: 1_000_000 };
export const CPU_SECONDS_RANGE: Range = { min: 1, max: 1_000_000_000 };
export const limitDefaults = { processes: 512, file_mb: 16_384, tmp_mb: 256 } as const;

const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const PORT = "(?:[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])";
const BYTE = "(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])";
/** What ends like a number is an address to some programs: 127.1, 0x7f.1. */
const LAST_LABEL = `(?!(?:\\d+|0x[0-9a-f]*):)${LABEL}`;
/** A name, or `*.` before one of at least two labels; an IPv4 address; an IPv6 address in brackets. */
export const HOST_AND_PORT = new RegExp(
  `^(?:(?:${LABEL}\\.){0,20}${LAST_LABEL}|\\*\\.(?:${LABEL}\\.){1,20}${LAST_LABEL}|(?:${BYTE}\\.){3}${BYTE}|\\[[0-9a-f:.]{2,45}\\]):${PORT}$`,
);
export const VARIABLE = /^[^=\0]+$/;

/** What no sandbox is shown, nor a part of it: the system's own, where sockets are, and what a sandbox has of its own. */
const CLOSED = ["/dev", "/proc", "/run", "/sandbox", "/sys", "/tmp", "/var/run"];
/** Parts of these may be shown. */
const CLOSED_AS_A_WHOLE = ["/", "/etc", "/var"];

const none: readonly string[] = [];

export const defaultPolicy: SandboxPolicy = policyOf(Fields.root({}, new Problems()));

/** `sandbox` of a node's config, as it must be. */
export function readPolicy(config: Fields): SandboxPolicy {
  return config.raw("sandbox") === undefined ? defaultPolicy : policyOf(config.object("sandbox"));
}

/** @returns the policy that a file holds, and all that is wrong with it; the paths point into the file */
export function parsePolicy(value: JsonValue): {
  readonly policy: SandboxPolicy;
  readonly problems: readonly ManifestProblem[];
} {
  const problems = new Problems();
  if (isObject(value)) return { policy: policyOf(Fields.root(value, problems)), problems: problems.list() };
  const message = `the policy must be a JSON object, not ${kindOf(value)}`;
  return { policy: defaultPolicy, problems: [{ path: "", code: "wrong_type", message }] };
}

function policyOf(fields: Fields): SandboxPolicy {
  refuseUnknown(fields, ["network", "read_only", "devices", "environment", "limits"]);
  const network = fields.object("network");
  refuseUnknown(network, ["allow", "check"]);
  return {
    network: {
      allow: names(network, "allow", HOSTS_MAX, (place, value) => hostAndPort(network, place, value)),
      check: network.boolean("check", false),
    },
    readOnly: names(fields, "read_only", READ_ONLY_MAX, (place, value) => readOnlyPath(fields, place, value)),
    devices: names(fields, "devices", DEVICES_MAX, (place, value) => {
      const text = 'it must be the path of a device, such as "/dev/dri/card0", without "." and ".." in it';
      return fields.checked(place, fields.checkedPath(place, value), DEVICE, "invalid_device", text);
    }),
    environment: names(fields, "environment", VARIABLES_MAX, (place, value) =>
      variable(fields, place, value),
    ),
    limits: limitsOf(fields.object("limits")),
  };
}

function limitsOf(fields: Fields): SandboxLimits {
  refuseUnknown(fields, ["memory_mb", "processes", "file_mb", "cpu_seconds", "tmp_mb"]);
  const memory = fields.integer("memory_mb", MEBIBYTES_RANGE, null);
  return {
    memoryBytes: memory === null ? null : memory * MiB,
    processes: fields.integer("processes", PROCESSES_RANGE, limitDefaults.processes),
    fileBytes: fields.integer("file_mb", MEBIBYTES_RANGE, limitDefaults.file_mb) * MiB,
    cpuSeconds: fields.integer("cpu_seconds", CPU_SECONDS_RANGE, null),
    tmpBytes: fields.integer("tmp_mb", MEBIBYTES_RANGE, limitDefaults.tmp_mb) * MiB,
  };
}

/** Limits as a policy has them. */
export function shownLimits({
  memoryBytes,
  processes,
  fileBytes,
  cpuSeconds,
  tmpBytes,
}: SandboxLimits): JsonObject {
  return {
    ...(memoryBytes !== null && { memory_mb: memoryBytes / MiB }),
    processes,
    file_mb: fileBytes / MiB,
    ...(cpuSeconds !== null && { cpu_seconds: cpuSeconds }),
    tmp_mb: tmpBytes / MiB,
  };
}

function refuseUnknown(fields: Fields, known: readonly string[]): void {
  for (const name of Object.keys(fields.source)) {
    if (!known.includes(name))
      fields.report(name, "unknown_field", `is unknown: there are ${known.join(", ")}`);
  }
}

type Place = readonly (string | number)[];

/** The texts of a list, each once. */
function names(
  fields: Fields,
  name: string,
  max: number,
  read: (place: Place, value: JsonValue) => string | null,
): readonly string[] {
  const given = fields.list(name, max);
  if (given.length === 0) return none;
  return [...new Set(given.flatMap((value, i) => read([name, i], value) ?? []))];
}

function hostAndPort(fields: Fields, place: Place, value: JsonValue): string | null {
  const text = 'it must be a host and a port, such as "api.example.com:443" or "*.example.com:443"';
  const given = fields.checkedName(place, value)?.toLowerCase() ?? null;
  return fields.checked(place, given, HOST_AND_PORT, "invalid_host", text);
}

function readOnlyPath(fields: Fields, place: Place, value: JsonValue): string | null {
  const given = fields.checkedPath(place, value);
  const text = 'it must be an absolute path without "." and ".." in it';
  const path = fields.checked(place, given?.replace(/(?<=.)\/+$/, "") ?? null, isPlain, "invalid_path", text);
  if (path === null || !isClosedPath(path)) return path;
  fields.report(place, "path_not_allowed", `is ${quoted(path)}, which no sandbox is shown`);
  return null;
}

function isPlain(path: string): boolean {
  const [first, ...parts] = path.split("/");
  return first === "" && (path === "/" || parts.every((part) => !["", ".", ".."].includes(part)));
}

/** Whether a path of the machine is never shown in a sandbox, whoever asks for it. */
export function isClosedPath(path: string): boolean {
  if (CLOSED_AS_A_WHOLE.includes(path)) return true;
  return CLOSED.some((closed) => `${path}/`.startsWith(`${closed}/`));
}

function variable(fields: Fields, place: Place, value: JsonValue): string | null {
  const text = 'a name of a variable is not empty and holds no "="';
  const name = fields.checked(place, fields.checkedName(place, value), VARIABLE, "invalid_name", text);
  if (name === null || !isWithheldVariable(name)) return name;
  const why = `names ${name}, which holds or leads to a secret of the runtime itself: no worker is given it`;
  fields.report(place, "variable_withheld", why);
  return null;
}

/** Paths that the workspace cannot take the place of, nor be in. */
const TAKEN = [
  "/bin",
  "/dev",
  "/etc",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/proc",
  "/sbin",
  "/sys",
  "/tmp",
  "/usr",
];
/** Names in /sandbox that are not the workspace's. */
export const sandboxNames = ["attempt", "models", "network", "node", "resources", "run", "volumes"] as const;

/** Where the workspace of a sandboxed node is inside. */
export function sandboxWorkspace(holder: Fields): string {
  const name = "sandbox_upload_path";
  const given = holder.path(name)?.replace(/(?<=.)\/+$/, "") ?? SANDBOX_WORKSPACE;
  const isTaken = (path: string) =>
    [...TAKEN, ...sandboxNames.map((one) => `/sandbox/${one}`)].some((taken) =>
      `${path}/`.startsWith(`${taken}/`),
    );
  const isFit = (path: string) => isPlain(path) && path !== "/" && path !== "/sandbox" && !isTaken(path);
  const text = `it must be an absolute path of its own in the sandbox, such as "${SANDBOX_WORKSPACE}"`;
  return holder.checked(name, given, isFit, "path_not_allowed", text) ?? SANDBOX_WORKSPACE;
}
