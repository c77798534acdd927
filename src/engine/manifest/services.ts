// What a manifest says of services: those that a job or one of its agents offers, and those that it needs.
//
// S1. A service that is read can be checked as it stands, but for a port that has only a label.
// S2. A service with a port and without checks has one: that the port takes connections.

import { isObject, type JsonObject, type JsonValue } from "../json.ts";
import type { RequiredService, ServiceCheck, ServiceSpec } from "../service.ts";
import type { Fields, Range } from "./fields.ts";
import { kindOf } from "./fields.ts";
import { quoted } from "./problems.ts";

const SERVICES_MAX = 32;
const CHECKS_MAX = 16;
const REQUIRED_MAX = 100;
const TAGS_MAX = 32;
const META_CHARS_MAX = 16 * 1024;
const PORTS_MAX = 1_000;

const portRange: Range = { min: 1, max: 65_535 };
const intervalRange: Range = { min: 100, max: 3_600_000 };
const timeoutRange: Range = { min: 10, max: 60_000 };
const failuresRange: Range = { min: 1, max: 1_000 };
const statusRange: Range = { min: 100, max: 599 };

const checkTypes = ["http", "tcp", "grpc", "script"] as const;
const methods = ["GET", "HEAD", "POST", "OPTIONS"] as const;

/** A name stands in URLs, a tag in a list of tags that commas separate. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;
const HOST = /^[A-Za-z0-9._-]+$|^[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?$/;
/** What may stand in a request line: nothing that ends or splits it. */
const REQUEST_PATH = /^\/[\x21-\x7e]*$/;

/** Numbers of declared ports by their labels; null for one that is given a number later. */
export type Ports = ReadonlyMap<string, number | null>;

const noPorts: Ports = new Map();
const noServices: readonly ServiceSpec[] = [];

/**
 * The ports that `resources` of a node, or of the whole manifest, declares: `{"ports": [{"label", "port"?}]}`.
 *
 * @param around those that are known there already; the inner ones win
 */
export function readPorts(holder: Fields, around: Ports = noPorts): Ports {
  holder.ignored("resources", "object or list");
  const given = holder.raw("resources");
  if (!isObject(given) || given.ports == null) return around;
  const resources = holder.object("resources");
  const ports = new Map(around);
  readList(resources, "ports", PORTS_MAX).forEach((value, i) => {
    const port = resources.objectIn("ports", i, value);
    const label = port?.requiredName("label") ?? null;
    if (port !== null && label !== null) ports.set(label, port.integer("port", portRange, null));
  });
  return ports;
}

/** The services of a node, or of the whole manifest: a list, or a single object. */
export function readServices(holder: Fields, ports: Ports): readonly ServiceSpec[] {
  holder.ignored("services", "object or list");
  const given = holder.raw("services");
  if (isObject(given)) return [readService(holder.object("services"), ports)];
  if (!Array.isArray(given)) return noServices;
  const services: ServiceSpec[] = [];
  const keys = new Set<string>();
  readList(holder, "services", SERVICES_MAX).forEach((value, i) => {
    const fields = holder.objectIn("services", i, value);
    if (fields === null) return;
    const service = readService(fields, ports);
    const key = service.id ?? service.name;
    if (service.name !== "" && keys.has(key)) {
      fields.report(
        service.id === null ? "name" : "id",
        "duplicate",
        `is ${quoted(key)}, which another service here has already: give each an id of its own`,
      );
    }
    keys.add(key);
    services.push(service);
  });
  return services;
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

function readName(
  fields: Fields,
  place: string | readonly (string | number)[],
  name: string | null,
): string | null {
  if (name === null || NAME.test(name)) return name;
  fields.report(
    place,
    "invalid_characters",
    `is ${quoted(name)}: it begins with a letter or digit, and only letters, digits, ".", "_", ":" and "-" follow`,
  );
  return null;
}

function readHost(fields: Fields, name: string): string | null {
  const host = fields.name(name, null);
  if (host === null || HOST.test(host)) return host;
  fields.report(name, "invalid_host", `is ${quoted(host)}: it must be a host name or an IP address`);
  return null;
}

/** It becomes a link in pages, so that nothing but the web's own schemes will do. */
function readPublicUrl(fields: Fields): string | null {
  const url = fields.text("public_url");
  if (url === null) return null;
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) return url;
  fields.report("public_url", "invalid_url", `is ${quoted(url)}: it must be an http or https URL`);
  return null;
}

function readTags(fields: Fields): readonly string[] {
  const tags = new Set<string>();
  readList(fields, "tags", TAGS_MAX).forEach((value, i) => {
    const tag = readName(fields, ["tags", i], fields.checkedName(["tags", i], value));
    if (tag !== null) tags.add(tag);
  });
  return [...tags];
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
  const values = readList(service, "checks", CHECKS_MAX);
  if (values.length === 0) return hasPort ? [portIsOpen] : [];
  return values.flatMap((value, i) => {
    const fields = service.objectIn("checks", i, value);
    const check = fields === null ? null : readCheck(fields, hasPort);
    return check === null ? [] : [check];
  });
}

function readCheck(fields: Fields, hasPort: boolean): ServiceCheck | null {
  if (fields.raw("type") === undefined) {
    fields.report("type", "missing", 'is missing: it must be "http", "tcp", "grpc" or "script"');
    return null;
  }
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
    const said = `is missing: a check of the type "${kind}" needs the port of the service, or one of its own`;
    fields.report("port", "missing", said);
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
  if (!REQUEST_PATH.test(path)) {
    const said = `is ${quoted(path)}: it must begin with "/" and hold neither blanks nor characters beyond ASCII`;
    fields.report("path", "invalid_path", said);
  }
  const method = fields.choice("method", methods, "GET");
  const contains = fields.text("contains");
  if (contains !== null && method === "HEAD") {
    fields.report("contains", "no_body", "cannot be looked for: the answer to HEAD has no body");
  }
  return {
    method,
    path,
    expectedStatus: fields.integer("expected_status", statusRange, null),
    contains,
  };
}

function readCommand(fields: Fields): readonly string[] {
  const given = fields.raw("command");
  const allowed = "a non-empty list of strings: a program and its arguments";
  if (given === undefined) fields.report("command", "missing", `is missing: it must be ${allowed}`);
  const words = fields.list("command");
  const isNothing = words.length === 0 || words[0] === "";
  if (Array.isArray(given) && isNothing) {
    fields.report("command", "empty", `names no program: it must be ${allowed}`);
  }
  return words.map((word, i) => {
    if (typeof word === "string" && !word.includes("\0")) return word;
    fields.report(
      ["command", i],
      "wrong_type",
      `must be a string without NUL characters, not ${kindOf(word)}`,
    );
    return "";
  });
}

/** The services that must be passing before the graph starts: names, or objects with a name, tags and a node. */
export function readRequiredServices(
  holder: Fields,
  field = "required_services",
): readonly RequiredService[] {
  holder.ignored(field, "object or list");
  const given = holder.raw(field);
  if (isObject(given)) return [readRequired(holder.object(field))];
  if (!Array.isArray(given)) return [];
  return readList(holder, field, REQUIRED_MAX).flatMap((value, i): RequiredService[] => {
    const place = [field, i] as const;
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

/** The list in a field; a longer one is reported, and read as empty. */
function readList(fields: Fields, name: string, max: number): readonly JsonValue[] {
  const values = fields.list(name);
  if (values.length <= max) return values;
  fields.report(name, "too_many", `has ${values.length} entries: at most ${max} are allowed`);
  return [];
}
