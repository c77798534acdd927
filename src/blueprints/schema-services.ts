// JSON Schema of services: those that a manifest or a node offers, and those that a manifest requires.

import { PORT_LABEL, PORTS_MAX } from "../engine/manifest/resources.ts";
import {
  anyObject,
  choice,
  commandList,
  either,
  flag,
  integer,
  list,
  name,
  open,
  path,
  type Schema,
  text,
} from "./schema-parts.ts";

const HOST = "^[A-Za-z0-9._-]+$|^[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?$";
const NAME = "^[A-Za-z0-9][A-Za-z0-9._:-]*$";

const port = (description: string) => integer(description, 1, 65_535);
const host = (description: string) => name(description, { pattern: HOST });
const serviceName = (description: string) => name(description, { pattern: NAME });
const tags = list("Words to find it by.", serviceName("A tag."), { maxItems: 32 });

const check: Schema = {
  ...open(
    "How it is found out whether the service is well.",
    {
      name: name("For people."),
      type: choice("http: an answer; tcp: a connection; grpc: grpc.health.v1; script: exit code 0.", [
        "http",
        "tcp",
        "grpc",
        "script",
      ]),
      interval_ms: integer("From one check to the next.", 100, 3_600_000, 10_000),
      timeout_ms: integer("How long one may take.", 10, 60_000, 2_000),
      failures_before_critical: integer(
        "Failures in a row that make a passing service critical.",
        1,
        1_000,
        1,
      ),
      address: host("Where it is asked; absent: the service's own."),
      port: port("Absent: the service's own."),
      method: choice("http: how it is asked.", ["GET", "HEAD", "POST", "OPTIONS"], "GET"),
      path: path("http: what is asked for.", { pattern: "^/[\\x21-\\x7e]*$", default: "/" }),
      expected_status: integer("http: the only good status; absent: 200 to 299.", 100, 599),
      contains: text("http: what the answer must hold."),
      service: text("grpc: the service's name; absent: the server as a whole."),
      command: commandList("script: a program and its arguments, started without a shell."),
    },
    ["type"],
  ),
  if: { required: ["type"], properties: { type: { const: "script" } } },
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  then: { required: ["command"] },
};

const service = open(
  "A long-lived process that others find by its name.",
  {
    name: serviceName("Stable: others ask for it."),
    id: name("Tells two of one name apart."),
    port: port("Where it listens."),
    port_label: name("In place of port: the label of a port in resources.ports."),
    address: host("The host that checks and callers use. Default: 127.0.0.1."),
    public_url: text("What a browser is given.", { pattern: "^[hH][tT][tT][pP][sS]?://" }),
    tags,
    meta: anyObject("Whatever callers may want to know."),
    checks: list("It is passing once all of them are.", check, { maxItems: 16 }),
  },
  ["name"],
);

export const servicesSchema = either(
  "Services that live as long as the job, or as a command of this node.",
  list("Several.", service, { maxItems: 32 }),
  service,
);

const required = open(
  "A service that must be passing.",
  { name: serviceName("Its name."), tags, node: name("The machine it must be on.") },
  ["name"],
);

const requiredServiceList = list(
  "Services that must be passing before a run starts.",
  either("A name, or a name with tags and a node.", serviceName("Its name."), required),
  { maxItems: 100 },
);

export const requiredServicesSchema = either("Services that must be passing.", requiredServiceList, required);

export const portsSchema = list(
  "Ports that services name by label, with numbers where they are fixed.",
  open("A port.", { label: name("Its label."), port: port("Its number.") }, ["label"]),
  { maxItems: 1_000 },
);

export const nodePortsSchema = list(
  "Ports that the command has for itself; services name them by label.",
  open(
    "A port.",
    {
      label: text("Its label: the command finds its number in SVC_PORT_ and the label in capitals.", {
        pattern: PORT_LABEL.source,
      }),
      port: either("Its number; auto, or absent: one that is free.", port("Its number."), { const: "auto" }),
      reserve: flag("false: the port is only named, for services.", true),
    },
    ["label"],
  ),
  { maxItems: PORTS_MAX },
);
