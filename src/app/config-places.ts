// The variables of where a program keeps its data, and of the nodes that share it.

import { hostname } from "node:os";
import { pathToFileURL } from "node:url";
import type { SharedPlace } from "../store/shared/open-shared.ts";
import {
  databaseUrl,
  host,
  hostAndPort,
  labels,
  nodeName,
  onOrOff,
  type PemFile,
  pemFile,
  port,
  sharedPlace,
  wholeNumber,
  withoutSecrets,
} from "./config-parsers.ts";
import { MASK, setting, shownPath, UNSET } from "./config-setting.ts";

export const placeSettings = {
  databaseUrl: setting<string | null>({
    variable: "SVC_DATABASE_URL",
    meaning:
      "PostgreSQL database, 15 or newer, for everything but files; unset: SQLite in SVC_HOME. TLS by its parameter sslmode.",
    example: "postgres://troupe:password@db.example.org/troupe",
    fallback: () => null,
    parse: databaseUrl,
    show: (value) => (value === null ? UNSET : withoutSecrets(value, MASK)),
  }),
  blobUrl: setting<SharedPlace | null>({
    variable: "SVC_BLOB_URL",
    meaning:
      "Where several machines keep artifacts: file:///folder, which all have, or s3://bucket/prefix?endpoint=…&region=… with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. Unset: in SVC_HOME, from where other nodes fetch them.",
    example: "s3://bucket/troupe?region=eu-central-1",
    fallback: () => null,
    parse: sharedPlace,
    show: shownPlace,
  }),
  databaseIsPooled: setting<boolean>({
    variable: "SVC_DATABASE_POOLED",
    meaning:
      "true when a pooler in transaction mode, such as PgBouncer, is before the database: no statement is prepared then.",
    example: "true",
    fallback: () => false,
    parse: onOrOff,
  }),
  nodeName: setting<string>({
    variable: "SVC_NODE_NAME",
    meaning: "Name of this node, for people. Unset: the host name of its machine.",
    example: "node1",
    fallback: () => hostname(),
    parse: nodeName,
  }),
  nodeLabels: setting<Readonly<Record<string, string>>>({
    variable: "SVC_NODE_LABELS",
    meaning: "Labels of this node.",
    example: "zone=a,gpu=l4",
    fallback: () => Object.freeze({}),
    parse: labels,
    show: showLabels,
  }),
  nodeLeaseSeconds: setting<number>({
    variable: "SVC_NODE_LEASE_SECONDS",
    meaning:
      "With SVC_DATABASE_URL: seconds after which other nodes take over what this one had, if it does not answer the database; the same on all nodes.",
    fallback: () => 15,
    parse: wholeNumber(10, 300),
  }),
  drainSeconds: setting<number>({
    variable: "SVC_DRAIN_SECONDS",
    meaning:
      "With SVC_DATABASE_URL: seconds that running attempts have to end when the program is to stop and other nodes take its jobs. 0: two, and the jobs wait for the next start, or for the recovery mode of each.",
    fallback: () => 30,
    parse: wholeNumber(0, 86_400),
  }),
  nodeHost: setting<string>({
    variable: "SVC_NODE_HOST",
    meaning:
      "With SVC_DATABASE_URL: address that the port for other nodes binds. Anything but loopback needs SVC_NODE_TLS_CERT, _KEY and _CA.",
    fallback: () => "127.0.0.1",
    parse: host,
  }),
  nodePort: setting<number>({
    variable: "SVC_NODE_PORT",
    meaning: "With SVC_DATABASE_URL: port for other nodes. 0: any free port.",
    fallback: () => 55052,
    parse: port,
  }),
  nodeAddress: setting<string | null>({
    variable: "SVC_NODE_ADDRESS",
    meaning: "host:port at which other nodes reach this one; unset: SVC_NODE_HOST and SVC_NODE_PORT.",
    example: "node1.example.org:55052",
    fallback: () => null,
    parse: hostAndPort,
  }),
  nodeTlsCert: setting<PemFile | null>({
    variable: "SVC_NODE_TLS_CERT",
    meaning:
      "File with the certificate of this node, and those between it and SVC_NODE_TLS_CA, as PEM. It names the host of SVC_NODE_ADDRESS.",
    example: "/etc/troupe/node.pem",
    fallback: () => null,
    parse: pemFile,
    show: shownPath,
  }),
  nodeTlsKey: setting<PemFile | null>({
    variable: "SVC_NODE_TLS_KEY",
    meaning: "File with the key of SVC_NODE_TLS_CERT, as PEM.",
    example: "/etc/troupe/node.key",
    fallback: () => null,
    parse: pemFile,
    show: shownPath,
  }),
  nodeTlsCa: setting<PemFile | null>({
    variable: "SVC_NODE_TLS_CA",
    meaning:
      "File with the certificate of the authority that signs those of the nodes, as PEM. Each holder of one is a node.",
    example: "/etc/troupe/nodes-ca.pem",
    fallback: () => null,
    parse: pemFile,
    show: shownPath,
  }),
};

function shownPlace(shared: SharedPlace | null): string {
  if (shared === null) return UNSET;
  if (shared.kind === "folder") return pathToFileURL(shared.path).href;
  const { bucket, prefix, endpoint, region } = shared.place;
  const query = [...(endpoint === null ? [] : [`endpoint=${endpoint}`]), `region=${region}`];
  return `s3://${bucket}/${prefix}?${query.join("&")}`;
}

function showLabels(given: Readonly<Record<string, string>>): string {
  const items = Object.entries(given).map(([name, value]) => `${name}=${value}`);
  return items.length === 0 ? UNSET : items.join(",");
}
