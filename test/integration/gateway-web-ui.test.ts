// Dashboards of runs through the real program: their ports, their service, their key, and what a crash leaves of them.
// What the page itself shows is tested in test/browser.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { zipOf } from "../support/bundle-files.ts";
import { startHere } from "../support/command-line.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  happens,
  sendBundle,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { graph, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { closed, freePorts, listenAt } from "../support/ports.ts";
import { processesWith, runs } from "../support/processes.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { rowsOf } from "../support/stored-rows.ts";
import { until } from "../support/until.ts";

/** Each dashboard is a process. */
const PORTS = sized(8, 50);
const API_TOKEN = "a-token-of-the-tests-own";
const webUi = { web_ui: { enabled: true, output: { title: "Held" } } };
/** Its runs go on until they are cancelled, and cost nothing meanwhile. */
const held = graph("held", [sensor("wait")]);

const heldJob = (program: Program, config: JsonObject = webUi) =>
  createJob(program, held, {}, { "config/default.json": config });

const rangeOf = (first: number, count: number) => ({
  SVC_BLUEPRINT_WEB_UI_PORT_START: String(first),
  SVC_BLUEPRINT_WEB_UI_PORT_END: String(first + count - 1),
});

const portOf = ({ home }: Program, runId: string) =>
  Number(rowsOf(home, "SELECT port FROM run_ports WHERE run_id = ?", runId)[0]?.port);

/** The dashboard's service of a run, as soon as it passes. */
function passing(program: Program, runId: string): Promise<JsonObject> {
  return until(`the dashboard of ${runId} passes`, async () => {
    const found = await walk(program, `/services?name=blueprint-web-ui&run_id=${runId}&status=passing`);
    return found[0] ?? null;
  });
}

const cancel = (program: Program, runId: string) =>
  call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });

describe(`of ${PORTS + 1} launches at once over ${PORTS} ports`, () => {
  let program: Program;
  let first = 0;
  before(async () => {
    first = await freePorts(PORTS);
    program = await startGatewayHere({ env: rangeOf(first, PORTS) });
  });
  after(() => program.stop());

  test("each gets one but the last, which is refused by name, and who ends gives its port on", async () => {
    const jobId = await heldJob(program);
    const answers = await Promise.all(
      Array.from({ length: PORTS + 1 }, () => ask(program, "POST", `/jobs/${jobId}/runs`, { body: {} })),
    );
    const accepted = answers.filter(({ status }) => status === 202).map(({ body }) => String(body.run_id));
    const refused = answers.filter(({ status }) => status !== 202);
    assert.equal(refused.length, 1, refused.map(({ text }) => text).join("\n"));
    const { detail } = assertProblem(refused[0]!, 409, "no_free_port");
    assert.match(
      String(detail),
      new RegExp(`All ${PORTS} ports .* \\(${first} to ${first + PORTS - 1}\\)\\. Wait until`),
    );
    const ports = accepted.map((runId) => portOf(program, runId));
    assert.deepEqual(
      ports.toSorted((a, b) => a - b),
      Array.from({ length: PORTS }, (_, i) => first + i),
    );
    // The refused one has left nothing behind.
    assert.equal((await walk(program, `/jobs/${jobId}/runs`)).length, PORTS);
    const [runId = "", ...others] = accepted;
    await cancel(program, runId);
    await ended(program, runId);
    const next = await startRun(program, jobId);
    assert.equal(portOf(program, next), ports[0]);
    assertProblem(await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {} }), 409, "no_free_port");
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    await Promise.all([next, ...others].map((one) => ended(program, one)));
    assert.equal((await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {} })).status, 202);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
  });
});

describe("a run with a dashboard", () => {
  let home = "";
  let program: Program;
  let env: Readonly<Record<string, string>> = {};
  before(async () => {
    home = await temporaryHome();
    env = rangeOf(await freePorts(3), 3);
    program = await startGateway({ home, env: { ...env, SVC_EXECUTOR_MAX_CONCURRENCY: "1" } });
  });
  after(async () => {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  });

  test("has a page at its service's public URL, which is found by its name while it passes", async () => {
    const jobId = await heldJob(program);
    const runId = await startRun(program, jobId);
    const service = await passing(program, runId);
    const url = String(service.public_url);
    assert.equal(url, `http://127.0.0.1:${portOf(program, runId)}/`);
    assert.deepEqual(service.tags, ["bundle", "web-ui"]);
    const { run_id, job_id, title, public_url } = service.meta as JsonObject;
    assert.deepEqual([run_id, job_id, title, public_url], [runId, jobId, "Held", url]);
    assert.match(await (await fetch(url)).text(), /<html/);
    const shown = (await (await fetch(new URL("run", url))).json()) as JsonObject;
    assert.equal(shown.run_id, runId);
    const resolved = await call(program, "GET", "/services/blueprint-web-ui/resolve?tag=bundle");
    assert.equal(resolved.run_id, runId);
    await cancel(program, runId);
    await ended(program, runId);
    assertProblem(
      await ask(program, "GET", "/services/blueprint-web-ui/resolve", {}),
      404,
      "service_not_found",
    );
  });

  test("takes no slot from the graph, does not count among its agents, and does not hold it open", async () => {
    const command = ["sh", "-c", 'until [ -e "$SVC_RUN_DIR/go" ]; do sleep 0.05; done'];
    const work = { node_id: "work", agent_type: "executor", config: { command } };
    const jobId = await createJob(program, graph("one", [work]), {}, { "config/default.json": webUi });
    const runId = await startRun(program, jobId);
    await happens(program, runId, "service_passing");
    await happens(
      program,
      runId,
      (event) => event.type === "sandbox_job_started" && event.agent_id === "work",
    );
    const { progress } = await call(program, "GET", `/runs/${runId}`);
    const { agents_total, agents_done, tasks_running } = progress as JsonObject;
    assert.deepEqual([agents_total, agents_done, tasks_running], [1, 0, 2]);
    // An earlier run's dashboard may still be on its way out.
    await until("one slot of each pool is in use", async () => {
      const { executor_pools: pools } = await call(program, "GET", "/runtime/status");
      const inUse = (name: string) => ((pools as JsonObject)[name] as JsonObject).in_use;
      return inUse("default") === 1 && inUse("@web-ui") === 1;
    });
    await writeFile(join(home, "runs", runId, "shared", "go"), "");
    const { run, events } = await ended(program, runId);
    assert.equal(run.status, "completed", JSON.stringify(run.failure));
    assert.deepEqual(Object.keys((run.result as JsonObject).outputs as JsonObject), ["work"]);
    const { agents_total: total, agents_done: done } = run.progress as JsonObject;
    assert.deepEqual([total, done], [1, 1]);
    const types = events.map(({ type }) => type);
    assert.ok(types.indexOf("service_deregistered") < types.indexOf("job_completed"));
  });

  test("goes on without its dashboard, which is started again when a signal ends it", async () => {
    const runId = await startRun(program, await heldJob(program));
    const { public_url: url } = await passing(program, runId);
    // One that asks politely, and did not come from the runtime, is no reason to stay away either.
    for (const [signal, attempt] of [
      ["SIGKILL", 2],
      ["SIGTERM", 3],
    ] as const) {
      const [pid, ...others] = processesWith(`SVC_WEB_UI_PORT=${portOf(program, runId)}`).filter(runs);
      assert.ok(pid !== undefined && others.length === 0);
      process.kill(pid, signal);
      await happens(
        program,
        runId,
        ({ type, payload }) => type === "sandbox_job_started" && payload.attempt === attempt,
      );
      assert.equal((await passing(program, runId)).public_url, url);
    }
    assert.equal((await fetch(String(url))).status, 200);
    assert.equal((await call(program, "GET", `/runs/${runId}`)).status, "running");
    await cancel(program, runId);
    await ended(program, runId);
  });

  test("keeps its port over a crash of the program, and its service passes again", async () => {
    const jobId = await heldJob(program);
    const started = await Promise.all([1, 2, 3].map(() => startRun(program, jobId)));
    const urls = await Promise.all(started.map(async (runId) => (await passing(program, runId)).public_url));
    assert.equal(new Set(urls).size, 3);
    await program.kill();
    program = await startGateway({ home, env: { ...env, SVC_EXECUTOR_MAX_CONCURRENCY: "1" } });
    const again = await Promise.all(started.map(async (runId) => (await passing(program, runId)).public_url));
    assert.deepEqual(again, urls);
    const shown = await Promise.all(
      urls.map(async (url) => ((await (await fetch(`${url}run`)).json()) as JsonObject).run_id),
    );
    assert.deepEqual(shown, started);
    assertProblem(await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {} }), 409, "no_free_port");
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    await Promise.all(started.map((runId) => ended(program, runId)));
  });

  test("shows the package's own page and what lies beside it, and nothing else of the package", async () => {
    const output = { adapter: "static_html", title: "Mine", page: "site/index.html" };
    const ownPage = { web_ui: { enabled: true, output } };
    const files = {
      "payloads/site/index.html": "<title>Mine</title>",
      "payloads/site/more/part.js": "export {};",
      "payloads/worker.py": "secret = 1",
    };
    const jobId = await createJob(program, held, {}, { "config/default.json": ownPage, ...files });
    const runId = await startRun(program, jobId);
    const url = String((await passing(program, runId)).public_url);
    assert.equal(await (await fetch(url)).text(), "<title>Mine</title>");
    assert.equal(await (await fetch(`${url}more/part.js`)).text(), "export {};");
    for (const path of ["worker.py", "%2e%2e/worker.py", "..%2fserver.mjs", "graph.json"]) {
      assert.equal((await fetch(url + path)).status, 404, path);
    }
    const run = (await (await fetch(`${url}_run/run`)).json()) as JsonObject;
    assert.equal(run.run_id, runId);
    await cancel(program, runId);
    await ended(program, runId);
    const bare = { web_ui: { enabled: true, output: { ...output, page: "worker.py" } } };
    const bareJob = await createJob(program, held, {}, { "config/default.json": bare, ...files });
    const refused = await ask(program, "POST", `/jobs/${bareJob}/runs`, { body: {} });
    const { detail, errors } = assertProblem(refused, 422, "validation_failed");
    assert.match(JSON.stringify([detail, errors]), /must lie in a folder of payloads/);
  });

  test("passes over a port on which a stranger listens", async (t) => {
    const first = Number(env.SVC_BLUEPRINT_WEB_UI_PORT_START);
    // All of them: a port that a dashboard is leaving is on offer too, when no other one is.
    const free = [0, 1, 2].map((i) =>
      until(`the dashboard at ${first + i} has gone`, () => listenAt(first + i).catch(() => null)),
    );
    const [stranger, ...others] = await Promise.all(free);
    t.after(() => stranger?.close());
    await Promise.all(others.map(closed));
    const jobId = await heldJob(program);
    const runId = await startRun(program, jobId);
    assert.notEqual(portOf(program, runId), first);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
  });
});

describe("with SVC_API_TOKEN", () => {
  let program: Program;
  const headers = { authorization: `Bearer ${API_TOKEN}` };
  before(async () => {
    program = await startGatewayHere({
      env: { ...rangeOf(await freePorts(2), 2), SVC_API_TOKEN: API_TOKEN },
    });
  });
  after(() => program.stop());

  test("a dashboard asks for its run's key, which reads that run at the gateway and nothing else", async () => {
    const zip = await zipOf({ "manifest.json": held, "config/default.json": webUi });
    const { body: bundle } = await sendBundle(program, zip, { headers });
    const body = { bundle_id: bundle.bundle_id };
    const created = await ask(program, "POST", "/jobs", { body, headers });
    const jobId = String(created.body.job_id);
    const begin = async () =>
      String((await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {}, headers })).body.run_id);
    const [runId, other] = [await begin(), await begin()];
    const service = await until("the dashboard passes", async () => {
      const query = `/services?name=blueprint-web-ui&run_id=${runId}&status=passing`;
      const { body } = await ask(program, "GET", query, { headers });
      return (body.items as readonly JsonObject[])[0] ?? null;
    });
    const url = new URL(String(service.public_url));
    const key = url.searchParams.get("key") ?? "";
    assert.match(key, /^trt_/);
    // The browser is sent on without the key, and has a cookie from then on.
    const opened = await fetch(url, { redirect: "manual" });
    assert.equal(opened.status, 303);
    assert.equal(opened.headers.get("location"), "/");
    const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
    assert.equal((await fetch(url.origin)).status, 401);
    const run = await fetch(`${url.origin}/run`, { headers: { cookie } });
    assert.equal(((await run.json()) as JsonObject).run_id, runId);

    const withKey = { headers: { authorization: `Bearer ${key}` } };
    assert.equal((await ask(program, "GET", `/runs/${runId}`, withKey)).status, 200);
    assert.equal((await ask(program, "GET", `/runs/${runId}/events`, withKey)).status, 200);
    for (const path of [`/runs/${other}`, "/runs", `/jobs/${jobId}`, "/services"]) {
      assertProblem(await ask(program, "GET", path, withKey), 401, "unauthorized");
    }
    const change = { body: { desired_state: "cancelled" }, ...withKey };
    assertProblem(await ask(program, "PATCH", `/runs/${runId}`, change), 401, "unauthorized");
    assert.ok(!program.output().includes(key), "the key is in the log");
    const { text } = await ask(program, "GET", `/runs/${runId}/events?page_size=200`, { headers });
    assert.ok(!text.includes(key), "the key is in the history");
    await ask(program, "POST", `/jobs/${jobId}/cancel`, { headers });
  });
});

describe("troupe blueprint run and troupe services", () => {
  let program: Program;
  let catalog = "";
  let env: Readonly<Record<string, string>> = {};
  before(async () => {
    catalog = await mkdtemp(join(tmpdir(), "troupe-f-catalog-"));
    const work = {
      node_id: "work",
      agent_type: "executor",
      config: {
        command: [
          "sh",
          "-c",
          `until [ -e "$SVC_RUN_DIR/go" ]; do sleep 0.05; done; printf '{"complete_run":%s}' "$SVC_BLUEPRINT_CONFIG_JSON"`,
        ],
      },
    };
    const files = {
      "waiter/manifest.json": { ...graph("waiter", [work]), metadata: { blueprint_id: "waiter" } },
      "hasty/manifest.json": graph("hasty", [work]),
      "hasty/config/default.json": webUi,
      "waiter/config/default.json": { ...webUi, depth: 1, place: { city: "Ghent" } },
    };
    for (const [name, content] of Object.entries(files)) {
      await mkdir(dirname(join(catalog, name)), { recursive: true });
      await writeFile(join(catalog, name), JSON.stringify(content));
    }
    env = { ...rangeOf(await freePorts(1), 1), SVC_BLUEPRINT_CATALOG: catalog };
    program = await startGatewayHere({ env });
  });
  after(async () => {
    await program.stop();
    await rm(catalog, { recursive: true, force: true });
  });

  const troupe = (...args: string[]) => startHere([...args, "--url", program.api], program.home);

  test("run adds what is not added, shows its dashboard's address, and takes settings", async () => {
    const running = troupe("blueprint", "run", "waiter", "--set", "depth=2", "--set", "place.zip=9000");
    await running.shows("Dashboard http://127.0.0.1:");
    const [, runId = ""] = /^Run (run_[0-9a-z]+)$/m.exec(running.printed()) ?? [];
    const listed = await troupe("services", "--run", runId).ended;
    assert.match(
      listed.out,
      /^blueprint-web-ui +passing +\S+ +http:\/\/127\.0\.0\.1:\d+\/ /m,
      listed.out + listed.err,
    );
    const [service] = JSON.parse((await troupe("services", "blueprint-web-ui", "--json").ended).out);
    assert.equal(service.run_id, runId);
    assert.deepEqual(service.tags, ["blueprint", "waiter", "web-ui"]);
    assert.match(running.printed(), new RegExp(`^Dashboard ${service.public_url}$`, "m"));
    const second = await troupe("blueprint", "run", "waiter").ended;
    assert.equal(second.code, 1);
    assert.match(second.err, /The only port for dashboards, \d+, is in use/);
    await writeFile(join(program.home, "runs", runId, "shared", "go"), "");
    const { code, out, err } = await running.ended;
    assert.equal(code, 0, out + err);
    const page = /^Its page stays at (http:\S+)$/m.exec(out)?.[1] ?? assert.fail(out);
    assert.match(await (await fetch(page)).text(), /<html/);
    assert.match(out, /"depth": 2/);
    assert.match(out, /"zip": 9000/);
    assert.match(out, /"city": "Ghent"/);
    const none = await troupe("services").ended;
    assert.deepEqual([none.code, none.out], [0, ""]);
  });

  test("a run that ends before its dashboard can be reached says where its page stays", async () => {
    const running = troupe("blueprint", "run", "hasty");
    await running.shows("Run run_");
    const [, runId = ""] = /^Run (run_[0-9a-z]+)$/m.exec(running.printed()) ?? [];
    await happens(program, runId, "service_registered");
    await writeFile(join(program.home, "runs", runId, "shared", "go"), "");
    const { code, out, err } = await running.ended;
    assert.equal(code, 0, out + err);
    const page = /^Its page stays at (http:\S+)$/m.exec(out)?.[1] ?? assert.fail(out);
    assert.match(await (await fetch(page)).text(), /<html/);
  });

  test("the group's word alone lists the catalog", async () => {
    assert.match((await troupe("blueprint").ended).out, /^BLUEPRINT +STATE.*\nhasty /);
  });

  test("what the command line says wrong is refused before anything is sent", async () => {
    const unset = await troupe("blueprint", "run", "waiter", "--set", "depth").ended;
    assert.equal(unset.code, 2);
    assert.match(unset.err, /--set "depth" is not of the form name=value/);
    const badId = await troupe("blueprint", "run", "No such/thing").ended;
    assert.equal(badId.code, 2);
    assert.match(badId.err, /is not the id of a blueprint\. `troupe blueprint list` lists them/);
  });
});
