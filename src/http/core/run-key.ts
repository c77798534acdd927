// A run's token as browsers carry it: once in a link (`?key=…`), from then on in a cookie. So the holder of a link to a
// run can load its page, its files and its events, and read nothing else.
//
// Y1. The key leaves the address at once: it would stand in histories and be copied along.
// Y2. Nobody is sent out of the run's own path, such as by dots in the address.
// Y3. The cookie is sent below the run's own path alone, and no script can read it.

import type { AskedOfRun, RunTokens } from "./run-token.ts";

const COOKIE = "troupe_run_key";

export interface OpenedByKey {
  /** The same address without the key. */
  readonly location: string;
  readonly cookie: string;
}

/** @returns null unless the address has the key of the run that it leads to */
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
