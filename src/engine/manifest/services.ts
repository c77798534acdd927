// What a manifest says of services: those that a job or one of its agents offers, and those that it needs.
//
// - A service that is read can be checked as it stands, but for a port that has only a label.
// - A service with a port and without checks has one: that the port takes connections.

import type { JsonObject } from "../json.ts";
import type { PortNeed } from "../resources.ts";
import type { RequiredService, ServiceCheck, ServiceSpec } from "../service.ts";
import { type Fields, oneOf, type Place, type Range } from "./fields.ts";
import { quoted } from "./problems.ts";
import { portRange, resourcesOf } from "./resources.ts";

const SERVICES_MAX = 32;
const CHECKS_MAX = 16;
const REQUIRED_MAX = 100;
const TAGS_MAX = 32;
const META_CHARS_MAX = 16 * 1024;
const PORTS_MAX = 1_000;

const intervalRange: Range = { min: 100, max: 3_600_000 };
const timeoutRange: Range = { min: 10, max: 60_000 };
const failuresRange: Range = { min: 1, max: 1_000 };
const statusRange: Range = { min: 100, max: 599 };

const checkTypes = ["http", "tcp", "grpc", "script"] as const;
const methods = ["GET", "HEAD", "POST", "OPTIONS"] as const;

/** A name is part of URLs, a tag of a list that commas separate. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;
const HOST = /^[A-Za-z0-9._-]+$|^[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?$/;
/** What a request line may contain: nothing that ends or splits it. */
const REQUEST_PATH = /^\/[\x21-\x7e]*$/;

/** Numbers of declared ports by their labels; null for one that is chosen when its command starts. */
export type Ports = ReadonlyMap<string, number | null>;

const noPorts: Ports = new Map();

/** The ports that `resources` of the whole manifest names: `{"ports": [{"label", "port"?}]}`. Nothing has them. */
export function readPorts(manifest: Fields): Ports {
  const resources = resourcesOf(manifest);
  if (resources === null) return noPorts;
  const declared = resources.objects("ports", PORTS_MAX, (port) => {
    const label = port.requiredName("label");
    if (port.raw("port") === "auto") {
      port.report("port", "no_command", "needs a command that has it: declare it in resources of that node");
      return null;
    }
    return label === null ? null : ([label, port.integer("port", portRange, null)] as const);
  });
  return new Map(declared);
}

/** @param around those that the manifest names; the node's own win */
export function withPortsOf(own: readonly PortNeed[], around: Ports): Ports {
  if (own.length === 0) return around;
  return new Map([...around, ...own.map(({ label, port }) => [label, port] as const)]);
}

/** The services of a node, or of the whole manifest: a list, or a single object. */
export function readServices(holder: Fields, ports: Ports): readonly ServiceSpec[] {
  const keys = new Set<string>();
  return holder.objectOrObjects("services", SERVICES_MAX, (fields) => {
    const service = readService(fields, ports);
    const key = service.id ?? service.name;
    if (service.name !== "" && keys.has(key)) {
      const text = `is ${quoted(key)}, which another service here has already: give each an id of its own`;
      fields.report(service.id === null ? "name" : "id", "duplicate", text);
    }
    keys.add(key);
    return service;
  });
}

function readService(fields: Fields, ports: Ports): ServiceSpec {
  const portLabel = fields.name("port_label", null);
  const own = fields.integer("port", portRange, null);
  const port = own ?? (portLabel === null ? null : (ports.get(portLabel) ?? null));
  return {
    name: readName(fields, "name", fields.requiredName("name")) ?? "",
    id: fields.name("id", null),
    port,
    portLabel,
    address: readHost(fields, "address"),
    publicUrl: readPublicUrl(fields),
    tags: readTags(fields),
    meta: readMeta(fields),
    checks: readChecks(fields, port !== null || portLabel !== null || fields.raw("port") !== undefined),
  };
}

function readName(fields: Fields, place: Place, name: string | null): string | null {
  const text = 'it begins with a letter or digit, and only letters, digits, ".", "_", ":" and "-" follow';
  return fields.checked(place, name, NAME, "invalid_characters", text);
}

function readHost(fields: Fields, name: string): string | null {
  const text = "it must be a host name or an IP address";
  return fields.checked(name, fields.name(name, null), HOST, "invalid_host", text);
}

/** It becomes a link in pages, so that nothing but the web's own schemes will do. */
function readPublicUrl(fields: Fields): string | null {
  const isWeb = (url: string) => /^https?:\/\//i.test(url) && URL.canParse(url);
  const text = "it must be an http or https URL";
  return fields.checked("public_url", fields.text("public_url"), isWeb, "invalid_url", text);
}

function readTags(fields: Fields): readonly string[] {
  const tags = fields.list("tags", TAGS_MAX).map((value, i) => {
    const place = ["tags", i];
    return readName(fields, place, fields.checkedName(place, value));
  });
  return [...new Set(tags.filter((tag) => tag !== null))];
}

function readMeta(fields: Fields): JsonObject {
  const { source } = fields.object("meta");
  const chars = JSON.stringify(source).length;
  if (chars <= META_CHARS_MAX) return source;
  fields.report("meta", "too_long", `has ${chars} characters as JSON: at most ${META_CHARS_MAX} are allowed`);
  return {};
}

const defaultTiming = { intervalMs: 10_000, timeoutMs: 2_000, failuresBeforeCritical: 1 } as const;
const portIsOpen: ServiceCheck = { kind: "tcp", name: "tcp", address: null, port: null, ...defaultTiming };

/** @param hasPort whether the service has one, or will be given one */
function readChecks(service: Fields, hasPort: boolean): readonly ServiceCheck[] {
  const isWithout = service.list("checks").length === 0;
  if (isWithout) return hasPort ? [portIsOpen] : [];
  return service.objects("checks", CHECKS_MAX, (fields) => readCheck(fields, hasPort));
}

function readCheck(fields: Fields, hasPort: boolean): ServiceCheck | null {
  if (!fields.isGiven("type", oneOf(checkTypes))) return null;
  const kind = fields.choice("type", checkTypes, "tcp");
  if (kind !== fields.raw("type")) return null;
  const common = {
    name: fields.name("name", null) ?? kind,
    intervalMs: fields.integer("interval_ms", intervalRange, defaultTiming.intervalMs),
    timeoutMs: fields.integer("timeout_ms", timeoutRange, defaultTiming.timeoutMs),
    failuresBeforeCritical: fields.integer("failures_before_critical", failuresRange, 1),
    address: readHost(fields, "address"),
    port: fields.integer("port", portRange, null),
  };
  if (kind !== "script" && !hasPort && fields.raw("port") === undefined) {
    const text = `is missing: a check of the type "${kind}" needs the port of the service, or one of its own`;
    fields.report("port", "missing", text);
  }
  switch (kind) {
    case "http":
      return { ...common, kind, ...readHttp(fields) };
    case "tcp":
      return { ...common, kind };
    case "grpc":
      return { ...common, kind, service: fields.text("service") ?? "" };
    case "script":
      return { ...common, kind, command: readCommand(fields) };
    default:
      return kind satisfies never;
  }
}

function readHttp(fields: Fields) {
  const path = fields.text("path") ?? "/";
  const text = 'it must begin with "/" and hold neither blanks nor characters beyond ASCII';
  fields.checked("path", path, REQUEST_PATH, "invalid_path", text);
  const method = fields.choice("method", methods, "GET");
  const contains = fields.text("contains");
  if (contains !== null && method === "HEAD") {
    fields.report("contains", "no_body", "cannot be looked for: the answer to HEAD has no body");
  }
  return { method, path, expectedStatus: fields.integer("expected_status", statusRange, null), contains };
}

function readCommand(fields: Fields): readonly string[] {
  const allowed = "a non-empty list of strings: a program and its arguments";
  fields.isGiven("command", allowed);
  const words = fields.list("command");
  if (Array.isArray(fields.raw("command")) && (words.length === 0 || words[0] === "")) {
    fields.report("command", "empty", `names no program: it must be ${allowed}`);
  }
  return words.map((word, i) => {
    if (typeof word === "string" && !word.includes("\0")) return word;
    fields.reportType(["command", i], "a string without NUL characters", word);
    return "";
  });
}

/** The services that must be passing before the graph starts: names, or objects with a name, tags and a node. */
export function readRequiredServices(
  holder: Fields,
  field = "required_services",
): readonly RequiredService[] {
  if (!Array.isArray(holder.raw(field))) return holder.objectOrObjects(field, 1, readRequired);
  return holder.list(field, REQUIRED_MAX).flatMap((value, i): readonly RequiredService[] => {
    const place = [field, i];
    if (typeof value === "string") {
      const name = readName(holder, place, holder.checkedName(place, value));
      return name === null ? [] : [{ name, tags: [], node: null }];
    }
    const fields = holder.objectIn(field, i, value);
    return fields === null ? [] : [readRequired(fields)];
  });
}

function readRequired(fields: Fields): RequiredService {
  const name = readName(fields, "name", fields.requiredName("name")) ?? "";
  return { name, tags: readTags(fields), node: fields.name("node", null) };
}
