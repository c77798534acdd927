// The dashboard of one run, as a process of its own: by itself beside a saved run (`node server.mjs`), or as a worker of
// the run that it shows, with which it ends.
//
//   SVC_WEB_UI_HOST, SVC_WEB_UI_PORT    where it listens; 127.0.0.1 and any free port without them
//   SVC_WEB_UI_TITLE                    the page's title; that of graph.json without it
//   SVC_WEB_UI_ADAPTER                  dashboard, or static_html for a page of the blueprint's own
//   SVC_WEB_UI_PAGE                     that page, seen from this file's folder; its folder is served with it
//   SVC_WEB_UI_PUBLIC_URL               under which browsers know this server, when that is not this machine
//   SVC_BLUEPRINT_RUN_EVENTS_URL        the run's event stream at the gateway; and
//   SVC_BLUEPRINT_RUN_EVENTS_TOKEN      the token for it, which browsers are then asked for, too
//   SVC_BLUEPRINT_RUN_EVENTS_FILE       without the URL: events.jsonl, which may grow; ./events.jsonl,
//                                       ./evidence/events.jsonl and the run's own folder are checked next
//
// - Asked to end, it stays until those who watch have the run's end, three seconds at most.
// - Its exit code is 0 when it has seen the run's end, and says SIGTERM otherwise: a signal that did not come from the
//   runtime must look like a failure, so that the dashboard is started again.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { admission } from "./admission.mjs";
import { EventHub } from "./event-hub.mjs";
import { GatewaySource } from "./gateway-source.mjs";
import { SavedSource } from "./saved-source.mjs";
import { serving } from "./serving.mjs";

const LISTEN_TRIES_MS = 10_000;
const LISTEN_AGAIN_MS = 100;
const LEAVE_MS = 3_000;
const LEAVE_LOOK_MS = 25;
/** After the last answer, browsers may still ask for what they have just learned of. */
const QUIET_MS = 400;
const FINAL_TRIES = 10;
const FINAL_AGAIN_MS = 150;
const CONNECTIONS_MAX = 2_000;
/** As shells show a program that SIGTERM has ended. */
const TERMINATED = 128 + 15;

const { env } = process;
const folder = import.meta.dirname;

function fail(message) {
  console.error(message);
  process.exit(1);
}

function sourceOf() {
  const runId = env.SVC_RUN_ID || null;
  const eventsUrl = env.SVC_BLUEPRINT_RUN_EVENTS_URL;
  if (eventsUrl) return new GatewaySource({ eventsUrl, token: env.SVC_BLUEPRINT_RUN_EVENTS_TOKEN || null });
  // `troupe runs save` puts the history into a folder beside the outputs.
  const saved = [env.SVC_BLUEPRINT_RUN_EVENTS_FILE, "events.jsonl", "evidence/events.jsonl"].filter(Boolean);
  const own = env.SVC_RUN_DIR ? [join(env.SVC_RUN_DIR, "events.jsonl")] : [];
  const found = [...saved, ...own].find((place) => existsSync(place)) ?? saved[0];
  const eventsFile = resolve(found);
  return new SavedSource({
    eventsFile,
    // A running worker's own folder has more in it than what the run is for.
    outputsFolder: own.includes(found)
      ? null
      : found === "evidence/events.jsonl"
        ? resolve()
        : dirname(eventsFile),
    runId,
  });
}

/** @returns null when there is none, or it cannot be used: then the agents are those that the events speak of */
async function readGraph() {
  try {
    const graph = JSON.parse(await readFile(join(folder, "graph.json"), "utf8"));
    const isList = (list) =>
      Array.isArray(list) && list.every((one) => typeof one === "object" && one !== null);
    return isList(graph.nodes) && isList(graph.edges) ? graph : null;
  } catch {
    return null;
  }
}

function siteOf() {
  if (env.SVC_WEB_UI_ADAPTER !== "static_html") return null;
  if (!env.SVC_WEB_UI_PAGE) fail("SVC_WEB_UI_ADAPTER is static_html, but SVC_WEB_UI_PAGE names no page.");
  const page = resolve(folder, env.SVC_WEB_UI_PAGE);
  return { folder: dirname(page), page: basename(page) };
}

const textOf = (value) => (typeof value === "string" && value !== "" ? value : null);

/** A port that the run's last dashboard still holds will be free in a moment. */
async function listen(server, host, port) {
  const untilMs = performance.now() + LISTEN_TRIES_MS;
  for (;;) {
    const error = await new Promise((done) => {
      server.once("error", done);
      server.listen({ host, port }, () => {
        server.off("error", done);
        done(null);
      });
    });
    if (error === null) return server.address();
    const isTaken = error.code === "EADDRINUSE";
    if (!isTaken || performance.now() > untilMs) {
      const why = isTaken
        ? `something else has listened there for ${LISTEN_TRIES_MS / 1_000} seconds. End it, or set SVC_WEB_UI_PORT to another port`
        : error.message;
      fail(`The dashboard cannot listen on ${host}:${port}: ${why}.`);
    }
    await delay(LISTEN_AGAIN_MS);
  }
}

const source = sourceOf();
// Files tell whose they are, if they lie beside the run's record.
source.runId ??= textOf((await source.run())?.run_id);
const graph = await readGraph();
const title = env.SVC_WEB_UI_TITLE || graph?.title || source.runId || "A saved run";
const key = env.SVC_BLUEPRINT_RUN_EVENTS_TOKEN || null;
const publicHost = URL.parse(env.SVC_WEB_UI_PUBLIC_URL ?? "")?.host;

const hub = new EventHub(source, async () => {
  // The run's row is written with its last event, but read on its own: a moment may lie between.
  let run = null;
  for (let tries = 0; tries < FINAL_TRIES; tries++) {
    run = await source.run();
    if (run === null || run.finished_at !== null) break;
    await delay(FINAL_AGAIN_MS);
  }
  return { run, outputs: await pages.outputs() };
});
const pages = serving({
  source,
  hub,
  graph: graph === null ? null : { nodes: graph.nodes, edges: graph.edges },
  title: String(title),
  folder,
  site: siteOf(),
  admit: admission({ key, runId: source.runId ?? "saved", publicHosts: publicHost ? [publicHost] : [] }),
});

let underWay = 0;
let lastAskedMs = Number.NEGATIVE_INFINITY;
const server = createServer({ headersTimeout: 20_000, requestTimeout: 60_000 }, (request, response) => {
  // The runtime's own question must not keep this process.
  const isPerson = !request.url.startsWith("/healthz");
  underWay++;
  response.once("close", () => {
    underWay--;
    if (isPerson) lastAskedMs = performance.now();
  });
  pages.answer(request, response).catch((error) => {
    console.error(`A request could not be answered: ${error.stack}`);
    if (response.headersSent) response.destroy();
    else response.writeHead(500).end();
  });
});
server.maxConnections = CONNECTIONS_MAX;

/** It does not wait for browsers when the gateway itself goes away. */
async function leave() {
  // Looks, not the clock: while this process is held up, no browser gets anything.
  for (let looks = 0; looks < LEAVE_MS / LEAVE_LOOK_MS; looks++) {
    const isQuiet = underWay === 0 && performance.now() - lastAskedMs > QUIET_MS;
    if (isQuiet || hub.state === "reconnecting") break;
    await delay(LEAVE_LOOK_MS);
  }
  process.exit(hub.state === "ended" ? 0 : TERMINATED);
}

process.once("SIGTERM", () => void leave());
process.once("SIGINT", () => process.exit(130));
// A worker's messages come here; none are expected, and none may pile up.
if (!process.stdin.isTTY) process.stdin.resume().on("error", () => {});

const address = await listen(server, env.SVC_WEB_UI_HOST || "127.0.0.1", Number(env.SVC_WEB_UI_PORT || 0));
const host = address.family === "IPv6" ? `[${address.address}]` : address.address;
console.log(`The dashboard of ${source.runId ?? "this saved run"} is at http://${host}:${address.port}/`);
await hub.start();
