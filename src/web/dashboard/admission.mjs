// Who may look at this dashboard.
//
// - With a key, a request that has it is admitted: once in the URL, from then on by a cookie; or as a bearer token.
// - Secrets are compared as digests, in constant time. The cookie is made from the key, and does not tell it.
// - Without a key, only names that no web site can have reach this server: a page cannot come here through a name of
//   its own that it points to this machine (DNS rebinding).
// - Pages of other sites read nothing and embed nothing, with or without a key. Following a link is no reading by a page.

import { createHmac, hash, timingSafeEqual } from "node:crypto";

const LOOPBACK_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|[a-z0-9-]+\.localhost)(:\d+)?$/i;

export const isLoopbackHost = (host) => LOOPBACK_HOST.test(host ?? "");

/**
 * @typedef {{ kind: "granted" } | { kind: "refused", status: number, text: string } | { kind: "redirect", to: string, cookie: string, isForeign: boolean }} Admission
 */

/**
 * Makes the check of a request.
 *
 * @param key null: no key is required
 * @param runId sets the cookies of several dashboards on one host apart
 * @param publicHosts further names, with their ports, under which this server is known
 * @returns {(request: import("node:http").IncomingMessage, url: URL) => Admission}
 */
export function admission({ key, runId, publicHosts }) {
  const admit = key === null ? byHost(publicHosts) : byKey(key, runId);
  return (request, url) => (isOtherSite(request.headers, publicHosts) ? OTHER_SITE : admit(request, url));
}

/** A browser that sends no Sec-Fetch-Site still sends Origin along with what a page's scripts read. */
function isOtherSite({ host, origin, "sec-fetch-site": site, "sec-fetch-mode": mode }, publicHosts) {
  if (site === "cross-site" && mode !== "navigate") return true;
  if (origin === undefined) return false;
  return ![host?.toLowerCase(), ...publicHosts].some(
    (name) => /^https?:\/\/(.*)$/.exec(origin)?.[1] === name,
  );
}

const byHost =
  (publicHosts) =>
  ({ headers: { host } }) =>
    isLoopbackHost(host) || publicHosts.includes(host?.toLowerCase()) ? GRANTED : FOREIGN;

function byKey(key, runId) {
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
const OTHER_SITE = {
  kind: "refused",
  status: 403,
  text: "This dashboard does not answer to other web sites.",
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
