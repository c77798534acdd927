// The dashboard's node and its files.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { executor, graph, router } from "../../test/support/graphs.ts";
import type { JsonObject } from "../engine/json.ts";
import { manifestProblemsText, parseManifest } from "../engine/manifest.ts";
import { graphPicture, injectWebUi, NoRoomForWebUi, type WebUiPlace, type WebUiRun } from "./inject.ts";
import { webUiFiles, writeWebUi } from "./write-web-ui.ts";

const manifest = graph("g", [router("in"), executor("work", ["true"])], [["in", "work", "task"]]);
const place: WebUiPlace = { host: "127.0.0.1", publicUrl: "http://127.0.0.1:{port}/" };
const run: WebUiRun = {
  webUi: { adapter: "dashboard", title: "Digest", page: null },
  port: 61_007,
  runId: "run_01",
  jobId: "job_01",
  blueprintId: "document-digest",
};

function compiled(given: JsonObject) {
  const parsed = parseManifest(given);
  if (parsed.kind === "invalid") assert.fail(manifestProblemsText(parsed.problems));
  return parsed.graph;
}

function dashboardOf(given: JsonObject) {
  const node = compiled(given).nodes.at(-1)!;
  assert.equal(node.nodeId, "blueprint_web_ui");
  assert.equal(node.config.kind, "executor");
  return { node, config: node.config as Extract<typeof node.config, { kind: "executor" }> };
}

test("the manifest is as it was, with one node more", () => {
  const before = structuredClone(manifest);
  const injected = injectWebUi(manifest, run, place);
  assert.deepEqual(manifest, before);
  const { nodes, ...rest } = injected;
  assert.deepEqual({ ...rest, nodes: (nodes as JsonObject[]).slice(0, -1) }, manifest);
  const [plain, full] = [compiled(manifest), compiled(injected)];
  // A rank is a place in an order, and the dashboard stands before or behind all others.
  const unranked = (nodes: typeof plain.nodes) => nodes.map(({ rank: _rank, ...node }) => node);
  assert.deepEqual(unranked(full.nodes.slice(0, -1)), unranked(plain.nodes));
  const order = (nodes: typeof plain.nodes) =>
    nodes.toSorted((a, b) => a.rank - b.rank || a.index - b.index).map(({ nodeId }) => nodeId);
  assert.deepEqual(order(full.nodes.slice(0, -1)), order(plain.nodes));
  assert.deepEqual(full.entrypoints, plain.entrypoints);
});

test("the node is an optional companion with a pool of its own, that is started again when it dies", () => {
  const { node, config } = dashboardOf(injectWebUi(manifest, run, place));
  assert.deepEqual(
    {
      longLived: config.longLived,
      optional: config.optional,
      isSource: node.isSource,
      pool: config.pool,
      slots: config.poolSlots,
      runEvents: config.runEvents,
      output: config.outputMessageType,
      timeout: config.timeoutSeconds,
      safeToRetry: config.safeToRetry,
    },
    {
      longLived: true,
      optional: true,
      isSource: false,
      pool: "@web-ui",
      slots: 1,
      runEvents: true,
      output: null,
      timeout: 0,
      safeToRetry: true,
    },
  );
  assert.ok(config.maxAttempts > 100);
  assert.deepEqual(config.command, ["{node}", "server.mjs"]);
  assert.deepEqual(config.uploadPaths, [{ path: "blueprint_web_ui", as: "blueprint_web_ui" }]);
  assert.equal(config.workdir, "blueprint_web_ui");
  assert.deepEqual(config.environment, {
    SVC_WEB_UI_HOST: "127.0.0.1",
    SVC_WEB_UI_PORT: "61007",
    SVC_WEB_UI_PUBLIC_URL: "http://127.0.0.1:61007/",
    SVC_WEB_UI_TITLE: "Digest",
    SVC_WEB_UI_ADAPTER: "dashboard",
  });
});

test("its service has a stable name, the run's identity, and a check that only this run's dashboard passes", () => {
  const [service, ...others] = dashboardOf(injectWebUi(manifest, run, place)).node.services;
  assert.equal(others.length, 0);
  assert.deepEqual(
    { ...service, checks: service!.checks.length },
    {
      name: "blueprint-web-ui",
      id: "run_01",
      port: 61_007,
      portLabel: "web_ui",
      address: "127.0.0.1",
      publicUrl: "http://127.0.0.1:61007/",
      tags: ["blueprint", "document-digest", "web-ui"],
      meta: {
        blueprint_id: "document-digest",
        run_id: "run_01",
        job_id: "job_01",
        public_url: "http://127.0.0.1:61007/",
        title: "Digest",
      },
      checks: 1,
    },
  );
  const [check] = service!.checks;
  assert.equal(check?.kind, "http");
  assert.equal(check?.kind === "http" && check.contains, "run_01");
  const ofBundle = dashboardOf(injectWebUi(manifest, { ...run, blueprintId: null }, place)).node.services[0]!;
  assert.deepEqual(ofBundle.tags, ["bundle", "web-ui"]);
  assert.equal(ofBundle.meta.blueprint_id, null);
});

test("bind host and public URL are two things, and the address follows from the host", () => {
  for (const host of ["0.0.0.0", "::", "192.168.1.7", "localhost"]) {
    const publicUrl = "https://desk.example.org/ui/{port}/";
    const { node, config } = dashboardOf(injectWebUi(manifest, run, { host, publicUrl }));
    assert.equal(config.environment.SVC_WEB_UI_HOST, host);
    assert.equal(node.services[0]?.address, host);
    assert.equal(node.services[0]?.publicUrl, "https://desk.example.org/ui/61007/");
  }
});

test("an author's own page is served from a copy of the folder it lies in, and from nothing else", () => {
  const webUi = { adapter: "static_html", title: "Mine", page: "web/site/start.html" } as const;
  const { config } = dashboardOf(injectWebUi(manifest, { ...run, webUi }, place));
  assert.deepEqual(config.uploadPaths, [
    { path: "blueprint_web_ui", as: "blueprint_web_ui" },
    { path: "web/site", as: "blueprint_web_ui/site" },
  ]);
  assert.equal(config.environment.SVC_WEB_UI_PAGE, "site/start.html");
  const bare = { ...webUi, page: "./start.html" };
  assert.throws(() => injectWebUi(manifest, { ...run, webUi: bare }, place), NoRoomForWebUi);
});

test("a package that has the dashboard's node or folder itself is refused with what to rename", async () => {
  const taken = graph("g", [executor("blueprint_web_ui", ["true"])]);
  assert.throws(() => injectWebUi(taken, run, place), /Rename the node, or set web_ui\.enabled to false/);
  const payload = await mkdtemp(join(tmpdir(), "troupe-f-"));
  await mkdir(join(payload, "blueprint_web_ui"));
  await assert.rejects(writeWebUi(payload, manifest, "Digest"), /has payloads\/blueprint_web_ui/);
  await rm(payload, { recursive: true });
});

test("the payload gets the server, the page and the picture of the graph", async () => {
  const payload = await mkdtemp(join(tmpdir(), "troupe-f-"));
  await writeWebUi(payload, manifest, "Digest");
  const names = await readdir(join(payload, "blueprint_web_ui"));
  assert.deepEqual(names.toSorted(), [...(await webUiFiles()), "graph.json"].toSorted());
  for (const name of ["server.mjs", "page.html"]) assert.ok(names.includes(name), name);
  assert.ok(names.every((name) => !name.endsWith(".ts")));
  const picture = JSON.parse(await readFile(join(payload, "blueprint_web_ui", "graph.json"), "utf8"));
  assert.deepEqual(picture, {
    title: "Digest",
    nodes: [
      { node_id: "in", agent_type: "router", role: null },
      { node_id: "work", agent_type: "executor", role: null },
    ],
    edges: [{ from_node: "in", to_node: "work", message_type: "task" }],
  });
  assert.deepEqual(graphPicture({}), { nodes: [], edges: [] });
  await rm(payload, { recursive: true });
});
