// How this program connects to PostgreSQL, whatever the connection is for.
//
// - Behind a pooler each transaction may have another connection of the server: nothing is left on a connection that a
//   later transaction would need, and nothing is asked for at its start.

import pg from "pg";
import { types } from "./values.ts";

const CONNECT_MS = 10_000;

/** How long a statement may take before its connection is given up. */
export const ANSWER_MS = 60_000;
/** A program that stands still, or is cut off, in a transaction must not hold the others up by its locks. */
const IDLE_IN_TRANSACTION_MS = 5_000;

/** A commit that returned is on disk, whatever the server's default. */
export const BEGIN =
  "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on; " +
  `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`;

export interface ConnectionConfig extends pg.ClientConfig {
  readonly Client: typeof pg.Client;
}

/**
 * @param url postgres://user:password@host:port/database, with TLS as its parameters say
 * @param isPooled whether a pooler that gives out connections for one transaction each is before the server
 */
export function configOf(url: string, isPooled = false): ConnectionConfig {
  return {
    connectionString: withStrictTls(url),
    application_name: "troupe",
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    types,
    Client: isPooled ? UnnamedClient : pg.Client,
  };
}

/** A prepared statement is its connection's, and has no name here: it is used once. */
class UnnamedClient extends pg.Client {
  override query = ((query: unknown, ...rest: readonly unknown[]) => {
    if (typeof query === "object" && query !== null && "name" in query) delete query.name;
    return (super.query as (...args: readonly unknown[]) => unknown)(query, ...rest);
  }) as pg.Client["query"];
}

/** A mode that asks for TLS checks the server's certificate and name; no-verify checks neither. */
function withStrictTls(url: string): string {
  const address = new URL(url);
  if (!["prefer", "require", "verify-ca"].includes(address.searchParams.get("sslmode") ?? "")) return url;
  address.searchParams.set("sslmode", "verify-full");
  return address.href;
}

/** Host and database, for texts: without user and password. */
export function serverOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = searchParams.get("host") ?? hostname;
  return `${host}${port === "" ? "" : `:${port}`}${pathname}`;
}
