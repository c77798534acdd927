// Who may look at this dashboard.
//
// K1. With a key, who shows it is let in: once in the URL, from then on by a cookie; or as a bearer token.
// K2. Secrets are compared as digests, in constant time. The cookie is made from the key, and does not tell it.
// K3. Without a key, only names that no web site can have reach this server: a page cannot come here through a name of
//     its own that it points to this machine (DNS rebinding).

import { createHmac, hash, timingSafeEqual } from "node:crypto";

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|[a-z0-9-]+\.localhost)(:\d+)?$/i;

export const isLoopbackHost = (host) => LOOPBACK_HOST.test(host ?? "");

/**
 * @typedef {{ kind: "granted" } | { kind: "refused", status: number, text: string } | { kind: "redirect", to: string, cookie: string, isForeign: boolean }} Admission
 */

/**
 * Makes the check of a request.
 *
 * @param key null: nobody is asked for one
 * @param runId sets the cookies of several dashboards on one host apart
 * @param publicHosts further names, with their ports, under which this server is known
 * @returns {(request: import("node:http").IncomingMessage, url: URL) => Admission}
 */
export function admission({ key, runId, publicHosts }) {
  if (key === null) {
    return ({ headers: { host } }) =>
      isLoopbackHost(host) || publicHosts.includes(host?.toLowerCase()) ? GRANTED : FOREIGN;
  }
  const cookieName = `troupe_dashboard_${hash("sha256", runId, "hex").slice(0, 16)}`;
  const cookieValue = createHmac("sha256", key).update(`dashboard of ${runId}`).digest("base64url");
  return ({ headers }, url) => {
    const shown = url.searchParams.get("key");
    if (shown !== null && isSame(shown, key)) {
      url.searchParams.delete("key");
      const cookie = `${cookieName}=${cookieValue}; HttpOnly; SameSite=Strict; Path=/`;
      // A browser that comes from another site does not show a strict cookie along the redirect.
      const isForeign = headers["sec-fetch-site"] === "cross-site";
      return { kind: "redirect", to: url.pathname + url.search, cookie, isForeign };
    }
    const bearer = /^bearer +(.*)$/i.exec(headers.authorization ?? "")?.[1];
    if (bearer !== undefined && isSame(bearer.trim(), key)) return GRANTED;
    return cookiesOf(headers.cookie, cookieName).some((value) => isSame(value, cookieValue))
      ? GRANTED
      : KEYLESS;
  };
}

const GRANTED = { kind: "granted" };
const FOREIGN = {
  kind: "refused",
  status: 403,
  text: "Without a key this dashboard answers only to names of this machine, such as 127.0.0.1.",
};
const KEYLESS = {
  kind: "refused",
  status: 401,
  text: "This dashboard asks for its key. Open the address that the run was started with, which ends in ?key=…",
};

const isSame = (given, expected) =>
  timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", expected, "buffer"));

/** Every cookie of this name: a host may have several, for other paths. */
function cookiesOf(header, name) {
  return (header ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
}
