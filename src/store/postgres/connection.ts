// How this program connects to PostgreSQL, whatever the connection is for.

import type pg from "pg";
import { types } from "./values.ts";

const CONNECT_MS = 10_000;

/**
 * A commit that returned is on disk: synchronous_commit is on, whatever the server's default.
 *
 * @param url postgres://user:password@host:port/database, with TLS as its parameters say
 */
export function configOf(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "troupe",
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    options: "-c synchronous_commit=on -c default_transaction_isolation=read\\ committed",
    types,
  };
}

/** Host and database, for texts: without user and password. */
export function serverOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = searchParams.get("host") ?? hostname;
  return `${host}${port === "" ? "" : `:${port}`}${pathname}`;
}
