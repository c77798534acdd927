// @ts-check
// Who looks. Without a token in the gateway nobody signs in. With one, the gateway gives a cookie that scripts cannot read
// and a key that only this origin has; a request needs both. The token itself is never kept.

import { signal } from "./html.js";

const KEY = "troupe-console-key";
const SESSION = "/console/session";

/** @typedef {{ needs_token: boolean, signed_in: boolean, run_id: string | null }} Session */

/** @type {Session} */
const open = { needs_token: false, signed_in: true, run_id: null };

export const session = signal(open);
/** Whether the reader came by a share: there is one run to read, and nothing to change. */
export const isGuest = () => session.value.run_id !== null;
/** Whether the sign-in view is over the page. */
export const signInShown = signal(false);

/** @type {(() => void)[]} */
let waiting = [];

/** @returns {Record<string, string>} headers of every request to the API */
export function keyHeaders() {
  const key = localStorage.getItem(KEY);
  return key === null ? {} : { "x-console-key": key };
}

/** Asks who is signed in; a link with a one-time secret signs in first, and leaves the address. */
export async function startSession() {
  const [, kind, secret] = /^#(link|share)=(.+)$/.exec(location.hash) ?? [];
  if (kind !== undefined && secret !== undefined) {
    history.replaceState(null, "", location.pathname + location.search);
    const refusal = await signIn({ [kind]: decodeURIComponent(secret) });
    if (refusal !== null) signInProblem.value = refusal;
  }
  await askSession();
}

async function askSession() {
  const answer = await fetch(SESSION, { headers: keyHeaders(), cache: "no-store" });
  session.value = answer.ok ? await answer.json() : open;
  signInShown.value = session.value.needs_token && !session.value.signed_in;
}

/** What went wrong with a link that was to sign in. */
export const signInProblem = signal(/** @type {string | null} */ (null));

/**
 * @param {Record<string, string>} secret {token}, {link} or {share}
 * @returns {Promise<string | null>} what is wrong, for people; null: signed in
 */
export async function signIn(secret) {
  try {
    const answer = await fetch(SESSION, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(secret),
    });
    const body = await answer.json().catch(() => null);
    if (!answer.ok) return refusalOf(answer, body, "token" in secret);
    localStorage.setItem(KEY, String(body.key));
    session.value = { needs_token: true, signed_in: true, run_id: body.run_id ?? null };
  } catch {
    return "The gateway cannot be reached. Check that it runs, then try again.";
  }
  goOn();
  return null;
}

/** What has waited for the sign-in goes on. */
function goOn() {
  signInProblem.value = null;
  signInShown.value = false;
  const resume = waiting;
  waiting = [];
  for (const one of resume) one();
}

/** Somebody has signed in, in another tab. */
export function signedInElsewhere() {
  if (signInShown.value) goOn();
}

/** @param {Response} answer @param {any} problem @param {boolean} isToken */
function refusalOf(answer, problem, isToken) {
  if (answer.status === 429) {
    const seconds = answer.headers.get("retry-after");
    return `Too many tries. Wait ${seconds === null ? "a minute" : `${seconds} s`}, then try again.`;
  }
  if (answer.status === 401 && isToken) return "This is not a token of SVC_API_TOKEN.";
  if (answer.status === 401)
    return "This link is used or its time is over. Get another one, or sign in with the token.";
  return typeof problem?.detail === "string" ? problem.detail : `The gateway refused (${answer.status}).`;
}

/**
 * Lets the reader sign in, and resolves when somebody has.
 *
 * @param {Record<string, string>} refused the key headers that were: where there are others by now, somebody has signed in already
 * @returns {Promise<void>}
 */
export function signedIn(refused) {
  if (JSON.stringify(refused) !== JSON.stringify(keyHeaders())) return Promise.resolve();
  signInShown.value = true;
  return new Promise((resolve) => {
    waiting.push(() => resolve(undefined));
  });
}

export async function signOut() {
  await fetch(SESSION, { method: "DELETE", headers: keyHeaders() });
  localStorage.removeItem(KEY);
  await askSession();
}

/**
 * The address of a file for a link, an image or a frame, which cannot send the key.
 *
 * @param {string} path @returns {Promise<string>}
 */
export async function linkTo(path) {
  if (!session.value.needs_token) return path;
  const answer = await fetch("/console/tickets", {
    method: "POST",
    headers: { "content-type": "application/json", ...keyHeaders() },
    body: JSON.stringify({ path }),
  });
  if (!answer.ok) throw new Error(`The gateway gives no ticket for this file (${answer.status}).`);
  return (await answer.json()).url;
}
