// The routes of jobs: what only the real server shows. Sentences of the contract are tested in test/integration.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startCore } from "../../../test/support/core.ts";
import { executor, graph, router, sensor } from "../../../test/support/graphs.ts";
import { startRoutes } from "../../../test/support/routes.ts";
import { until } from "../../../test/support/until.ts";
import type { JsonObject } from "../../engine/json.ts";

const quick = graph("quick", [router("in")]);
const slow = graph("slow", [executor("work", ["true"])]);
const held = graph("held", [sensor("wait")]);

const etagOf = (answer: { readonly headers: Headers }) => answer.headers.get("etag") ?? "";

describe("the ETag of a job", () => {
  test("changes with every answer it stands for, though all happens in one millisecond", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(slow);
    const path = `/jobs/${jobId}`;
    const stopped = core.clock.nowMs();
    core.clock.nowMs = () => stopped;
    const seen = [etagOf(await ask("GET", path))];
    const run = await core.accept(jobId);
    seen.push(etagOf(await ask("GET", path)));
    await core.runs.control(run.runId, "paused");
    seen.push(etagOf(await ask("GET", path)));
    await core.runs.control(run.runId, "cancelled");
    seen.push(etagOf(await ask("GET", path)));
    assert.equal(new Set(seen).size, seen.length, seen.join(" "));
  });

  test("of an answer that has not changed gets 304 without a body, by GET and by HEAD", async () => {
    await using routes = await startRoutes();
    const { jobId } = await routes.core.job(quick);
    for (const query of ["", "?view=full"]) {
      const path = `/jobs/${jobId}${query}`;
      const etag = etagOf(await routes.ask("GET", path));
      for (const method of ["GET", "HEAD"]) {
        const again = await routes.ask(method, path, { headers: { "if-none-match": etag } });
        assert.deepEqual([again.status, again.text, etagOf(again)], [304, "", etag]);
      }
    }
  });

  test("of the full view changes with the events that it shows", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(held);
    const run = await core.start(jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    const path = `/jobs/${jobId}?view=full`;
    const etag = etagOf(await ask("GET", path));
    await core.runs.control(run.runId, "paused");
    const later = await ask("GET", path, { headers: { "if-none-match": etag } });
    assert.equal(later.status, 200);
    assert.match(later.text, /"job_paused"/);
  });

  test("of any answer, a list's item not included, is good for If-Match while the definition stays", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(quick);
    const path = `/jobs/${jobId}`;
    const etag = etagOf(await ask("GET", `${path}?view=full`));
    const run = await core.start(jobId);
    await core.ended(run.runId);
    const patched = await ask("PATCH", path, { body: { name: "New" }, headers: { "if-match": etag } });
    assert.equal(patched.status, 200, patched.text);
    const stale = await ask("DELETE", path, { headers: { "if-match": etag } });
    assert.deepEqual([stale.status, etagOf(stale)], [412, etagOf(patched)]);
    const gone = await ask("DELETE", path, { headers: { "if-match": etagOf(stale) } });
    assert.equal(gone.status, 204);
  });
});

describe("the full view", () => {
  test("shows no secret of the manifest, wherever it stands", async () => {
    await using routes = await startRoutes();
    const manifest = {
      ...graph("secretive", [router("in"), router("out")]),
      metadata: { api_key: "s3cret-one" },
      services: [{ name: "web", port: 80, meta: { password: "s3cret-two" } }],
      edges: [{ from_node: "in", to_node: "out", token: "s3cret-three", note: "s3cret-four" }],
    };
    const { jobId } = await routes.core.job(manifest, { client_secret: "s3cret-five" });
    const { text, body } = await routes.ask("GET", `/jobs/${jobId}?view=full`);
    assert.doesNotMatch(text.replace('"note":"s3cret-four"', ""), /s3cret/);
    const { edges } = body.graph as { readonly edges: JsonObject[] };
    assert.deepEqual(edges, [{ edge_id: null, from_node: "in", to_node: "out", message_type: null }]);
    const [service] = body.services as JsonObject[];
    assert.deepEqual(service, { name: "web", port: 80, meta: { password: "********" } });
  });

  test("shows the newest events, newest first, also of a run that ended before its launch", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { jobId } = await core.job(slow);
    const events = async () =>
      (await ask("GET", `/jobs/${jobId}?view=full`)).body.recent_events as readonly {
        readonly id: number;
        readonly type: string;
      }[];
    assert.deepEqual(await events(), []);
    const run = await core.start(jobId);
    await core.whenRun(run.runId, (one) => one.launched);
    // What was launched is on disk before its command is begun.
    const start = await until("the command is begun", () => core.starts[0] ?? null);
    const log = { type: "log", payload: { level: "info", message: "x" } };
    for (let n = 0; n < 60; n++) core.engine.taskEvents(start.ref, [log]);
    await core.endCommand(run.runId);
    const { progress } = await core.ended(run.runId);
    const shown = await events();
    assert.deepEqual(
      shown.map(({ id }) => id),
      Array.from({ length: 20 }, (_, n) => progress.eventCount - n),
    );
    assert.equal(shown[0]?.type, "job_completed");
    await core.ends.cancelled((await core.accept(jobId)).runId);
    assert.deepEqual(
      (await events()).map(({ type }) => type),
      ["job_cancelled"],
    );
  });

  test("of a job whose bundle's content is gone is refused, with the way to bring it back; the compact view goes on", async () => {
    await using first = await startCore();
    const job = await first.job(quick);
    await using routes = await startRoutes(await startCore(await first.end()));
    await rm(join(first.home, "bundles", job.bundleFingerprint ?? ""), { recursive: true });
    const full = await routes.ask("GET", `/jobs/${job.jobId}?view=full`);
    assert.deepEqual([full.status, full.body.code], [409, "conflict"]);
    assert.match(String(full.body.detail), /upload the same bundle again/);
    assert.equal((await routes.ask("GET", `/jobs/${job.jobId}`)).status, 200);
  });

  test("of a job with ten thousand nodes is whole", async () => {
    await using routes = await startRoutes();
    const nodes = Array.from({ length: 10_000 }, (_, n) => router(`n${n}`));
    const { jobId } = await routes.core.job(graph("large", nodes, [["n0", "n1"]]));
    const { status, body } = await routes.ask("GET", `/jobs/${jobId}?view=full`);
    assert.equal(status, 200);
    assert.equal((body.graph as { readonly nodes: unknown[] }).nodes.length, 10_000);
  });
});

describe("POST /jobs under a key", () => {
  test("is answered again with Location and ETag, also when the job has changed since", async () => {
    await using routes = await startRoutes();
    const { bundleId } = await routes.core.bundle(quick);
    const given = { body: { bundle_id: bundleId }, headers: { "idempotency-key": "k" } };
    const first = await routes.ask("POST", "/jobs", given);
    assert.equal(first.status, 201, first.text);
    const path = `/jobs/${first.body.job_id}`;
    await routes.ask("PATCH", path, { body: { name: "New" }, headers: { "if-match": "*" } });
    const again = await routes.ask("POST", "/jobs", given);
    assert.equal(again.text, first.text);
    for (const name of ["location", "etag", "content-type"]) {
      assert.equal(again.headers.get(name), first.headers.get(name), name);
    }
    assert.deepEqual(
      [first.headers.get("idempotency-replayed"), again.headers.get("idempotency-replayed")],
      [null, "true"],
    );
  });

  test("that was refused may be sent again, corrected", async () => {
    await using routes = await startRoutes();
    const { bundleId } = await routes.core.bundle(quick);
    const headers = { "idempotency-key": "k" };
    assert.equal((await routes.ask("POST", "/jobs", { body: { bundle_id: "x" }, headers })).status, 422);
    assert.equal((await routes.ask("POST", "/jobs", { body: { bundle_id: bundleId }, headers })).status, 201);
  });
});

describe("lists of jobs", () => {
  test("with a limit below the page's size, at it and above it show as many as there are, and end", async () => {
    await using routes = await startRoutes();
    for (let n = 0; n < 5; n++) await routes.core.job(quick);
    for (const [query, counts] of [
      ["limit=3&page_size=2", [2, 1]],
      ["limit=2&page_size=2", [2]],
      ["limit=1", [1]],
      ["limit=5&page_size=5", [5]],
      ["limit=6&page_size=4", [4, 1]],
      ["limit=1000000", [5]],
    ] as const) {
      const seen: number[] = [];
      for (let token: unknown = ""; token !== null; ) {
        const path = `/jobs?${query}${token === "" ? "" : `&page_token=${token}`}`;
        const { status, body } = await routes.ask("GET", path);
        assert.equal(status, 200);
        seen.push((body.items as unknown[]).length);
        token = body.next_page_token;
      }
      assert.deepEqual(seen, counts, query);
    }
  });

  for (const query of [
    "limit=0",
    "limit=-0",
    "limit=1.5",
    "limit=1e999",
    "limit=99999999999999999999",
    "limit=",
    "include_terminal=maybe",
    "sort=x",
  ]) {
    test(`refuse ${query}`, async () => {
      await using routes = await startRoutes();
      const { status, body } = await routes.ask("GET", `/jobs?${query}`);
      assert.deepEqual([status, body.code], [400, "invalid_parameter"]);
    });
  }

  test("refuse a token of another list, and of the same list with another filter", async () => {
    await using routes = await startRoutes();
    for (let n = 0; n < 3; n++) await routes.core.job(quick);
    const { body } = await routes.ask("GET", "/jobs?page_size=1");
    const token = `page_token=${body.next_page_token}`;
    for (const path of [
      `/bundles?${token}`,
      `/runs?${token}`,
      `/jobs?include_terminal=false&${token}`,
      `/jobs?limit=2&${token}`,
    ]) {
      const answer = await routes.ask("GET", path);
      assert.deepEqual([answer.status, answer.body.code], [400, "invalid_page_token"], path);
    }
    assert.equal((await routes.ask("GET", `/jobs?include_terminal=true&page_size=2&${token}`)).status, 200);
  });
});
