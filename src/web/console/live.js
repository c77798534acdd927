// @ts-check
// Changes of lists, as the gateway announces them, over one connection for all tabs. What is not announced is read again now and
// then: lists without a topic, and all of them where the gateway has no such stream.

import { signal } from "./html.js";
import { scriptUrl } from "./script-url.js";
import { isGuest, keyHeaders, signedIn, signedInElsewhere } from "./session.js";

const AGAIN_MS = 3_000;
/** What the stream tells. "run-ends" are those of its runs that have ended. */
const announced = new Set([
  "runs",
  "run-ends",
  "human",
  "dead-letters",
  "services",
  "operations",
  "deployments",
  "schedules",
]);

/** @typedef {import("./list-connection.js").State} State */
/** @typedef {import("./list-connection.js").News} News */
/** @typedef {News["changes"][number]} Change */
/** @typedef {(changes: readonly Change[] | null) => void} Take null: read it all again */

/** How the console hears of changes. */
export const connection = signal(
  /** @type {State} */ ({ kind: "state", state: "connecting", sinceMs: null }),
);

/** @type {Map<Take, ReadonlySet<string>>} */
const watchers = new Map();
/** @type {((message: object) => void) | null} */
let send = null;
let isSigningIn = false;
/** The headers of the last attempt. */
let shown = keyHeaders();

/**
 * Calls `take` with what has changed of the topics.
 *
 * @param {readonly string[]} topics @param {Take} take @returns {() => void} ends it
 */
export function watch(topics, take) {
  watchers.set(take, new Set(topics));
  if (!isGuest()) open();
  return () => watchers.delete(take);
}

function open() {
  if (send !== null) return;
  send = openWorker() ?? openHere();
  follow();
  addEventListener("pagehide", () => send?.({ kind: "leave" }));
  addEventListener("pageshow", ({ persisted }) => persisted && follow());
  setInterval(() => {
    if (document.hidden) return;
    const isAnnounced = (/** @type {ReadonlySet<string>} */ topics) =>
      [...topics].some((topic) => announced.has(topic));
    for (const [take, topics] of watchers) {
      if (connection.value.state === "none" || !isAnnounced(topics)) take(null);
    }
  }, AGAIN_MS);
}

function follow() {
  shown = keyHeaders();
  send?.({ kind: "follow", headers: shown });
}

/** @returns {((message: object) => void) | null} null where browsers have no shared workers */
function openWorker() {
  if (typeof SharedWorker === "undefined") return null;
  try {
    const url = new URL("./list-worker.js", import.meta.url).href;
    const { port } = new SharedWorker(scriptUrl(url), { type: "module", name: "troupe lists" });
    port.onmessage = ({ data }) => receive(data);
    return (message) => port.postMessage(message);
  } catch {
    return null;
  }
}

function openHere() {
  const here = import("./list-connection.js").then(({ ListConnection }) => new ListConnection(receive));
  return (/** @type {any} */ { kind, headers }) =>
    void here.then((one) => (kind === "leave" ? one.end() : one.follow(headers)));
}

/** @param {State | News} message */
function receive(message) {
  if (message.kind === "news") {
    tell(message);
    return;
  }
  connection.value = message;
  if (message.state === "sign-in") void signInAgain();
  else if (message.state === "live" && isSigningIn) signedInElsewhere();
}

/** @param {News} news */
function tell({ isReset, changes }) {
  for (const [take, topics] of watchers) {
    if (isReset) take(null);
    const wanted = changes.filter(
      ({ topic, changes: now }) =>
        topics.has(topic) || (topics.has("run-ends") && topic === "runs" && now?.finished_at !== null),
    );
    if (wanted.length > 0) take(wanted);
  }
}

async function signInAgain() {
  if (isSigningIn) return;
  isSigningIn = true;
  await signedIn(shown);
  isSigningIn = false;
  follow();
}
