// A run's token as browsers carry it: once in a link (`?key=…`), from then on in a cookie. With such a link
// a browser can load the run's page, files and events, and nothing else.
//
// - The key is removed from the address at once: it would stay in histories and be copied along.
// - A redirect stays below the run's own path, also with dots in the address.
// - The cookie is limited to the run's own path, and scripts cannot read it.

import type { AskedOfRun, RunTokens } from "./run-token.ts";

const COOKIE = "troupe_run_key";

export interface OpenedByKey {
  /** The same address without the key. */
  readonly location: string;
  readonly cookie: string;
}

/** @returns null unless the address has the key of the run in its path */
export function openedByKey(asking: AskedOfRun, runTokens: RunTokens): OpenedByKey | null {
  if (!asking.url?.includes("key=")) return null;
  const address = URL.parse(asking.url, "http://gateway");
  const key = address?.searchParams.get("key");
  if (address == null || key == null) return null;
  const runId = runTokens.runRead(asking, key);
  const path = `/api/v1/runs/${runId}`;
  if (runId === null || !`${address.pathname}/`.startsWith(`${path}/`)) return null;
  address.searchParams.delete("key");
  return {
    location: address.pathname + address.search,
    cookie: `${COOKIE}=${key}; HttpOnly; SameSite=Lax; Path=${path}`,
  };
}

/** The run token in a Cookie header; null without one. */
export function keyInCookie(header: string | undefined): string | null {
  if (header === undefined) return null;
  const pair = header.split(";").find((one) => one.trim().startsWith(`${COOKIE}=`));
  return pair === undefined ? null : pair.trim().slice(COOKIE.length + 1);
}
