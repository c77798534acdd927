// POST /nodes/{node_id}/reconcile and `troupe node reconcile` on real programs: what a test has planted is found and fixed, and
// what attempts use is never touched, however much begins and ends meanwhile.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../src/app/clock.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { canMark, withMark } from "../../src/execution/process/process-marks.ts";
import { ProcessTrees } from "../../src/execution/process/process-trees.ts";
import { startHere } from "../support/command-line.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  happens,
  startGateway,
  startRun,
} from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { freePorts } from "../support/ports.ts";
import { inPostgres } from "../support/postgres.ts";
import type { Program } from "../support/program.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

const skip = !canMark() && "limits of processes cannot be set here";
const LONG_AGO = new Date("2020-01-01");

const planted = new Set<ChildProcess>();
after(() => {
  for (const child of planted) child.kill("SIGKILL");
});

/** A process as a command of that home would have left it. */
function leave(home: string, script: string): { readonly pid: number; readonly gone: Promise<unknown> } {
  const mark = new ProcessTrees(home, systemClock).newMark();
  const options = { detached: true, stdio: "ignore" } as const;
  const child = withMark(mark, () => spawn(process.execPath, ["-e", script], options));
  planted.add(child);
  return { pid: child.pid!, gone: once(child, "exit") };
}

const FOR_EVER = "setInterval(() => {}, 1e6)";

async function nodeIdOf(program: Program): Promise<string> {
  const { items } = (await call(program, "GET", "/nodes")) as { items: readonly JsonObject[] };
  return String(items.find(({ self }) => self)?.node_id);
}

interface Found {
  readonly differences: readonly { kind: string; where: string; fixed: boolean }[];
  readonly has_more: boolean;
}

const reconcile = async (program: Program, nodeId: string, body?: JsonObject) =>
  (await call(program, "POST", `/nodes/${nodeId}/reconcile`, body)) as unknown as Found;
const namesIn = ({ differences }: Found) => differences.map(({ kind, where }) => `${kind} ${where}`);

describe("a program that is the only node", { skip }, () => {
  let program: Program;
  let nodeId: string;
  let gates: Gates;
  before(async () => {
    [program, gates] = await Promise.all([startGateway(), makeGates()]);
    nodeId = await nodeIdOf(program);
  });
  after(() => Promise.all([program.stop(), gates.remove()]));

  test("lists what is left, fixes it when it is asked to, and leaves alone what an attempt uses", async () => {
    const gate = gates.pipe("uses");
    const runId = await startRun(
      program,
      await createJob(program, graph("uses", [executor("in", ["cat", gate])])),
    );
    await happens(program, runId, "sandbox_job_started");
    const runs = join(program.home, "runs");
    const [run = ""] = readdirSync(runs);
    const attempts = join(runs, run, "agents", "in", "attempts");
    const used = readdirSync(attempts);
    const old = (...path: readonly string[]) => {
      mkdirSync(join(...path), { recursive: true });
      utimesSync(join(...path), LONG_AGO, LONG_AGO);
    };
    old(runs, "run_unknown");
    old(attempts, "1-99");
    old(attempts, used[0]!);
    // Nothing behind a symlink is looked at.
    old(program.home, "elsewhere", "attempts", "1-1");
    symlinkSync(join(program.home, "elsewhere"), join(runs, run, "agents", "linked"));
    mkdirSync(join(runs, "run_new"));
    mkdirSync(join(attempts, "1-98"));
    const { pid, gone } = leave(program.home, FOR_EVER);
    const expected = [
      /^process process \d+, started at \d+$/,
      /^workspace runs\/run_unknown$/,
      /^workspace runs\/.*\/agents\/in\/attempts\/1-99$/,
    ];
    const listed = await reconcile(program, nodeId);
    const names = namesIn(listed);
    assert.equal(names.length, expected.length, names.join("\n"));
    for (const one of expected)
      assert.ok(
        names.some((name) => one.test(name)),
        `${one}: ${names}`,
      );
    assert.ok(names[0]?.includes(`process ${pid},`));
    assert.ok(listed.differences.every(({ fixed }) => !fixed) && !listed.has_more);
    const command = (...more: readonly string[]) =>
      startHere(["node", "reconcile", nodeId, "--url", program.api, ...more], program.home).ended;
    const shown = await command();
    assert.deepEqual(
      [shown.code, /3 differences, 3 of them not fixed/.test(shown.out)],
      [1, true],
      shown.out,
    );
    const fixed = await command("--fix", "--json");
    assert.equal(fixed.code, 0, fixed.out);
    const answer = JSON.parse(fixed.out) as Found;
    assert.deepEqual(namesIn(answer).sort(), names.toSorted());
    assert.ok(answer.differences.every((one) => one.fixed));
    await gone;
    assert.deepEqual(readdirSync(attempts).sort(), [...used, "1-98"].sort());
    assert.deepEqual(readdirSync(runs).sort(), [run, "run_new"].sort());
    assert.ok(existsSync(join(program.home, "elsewhere", "attempts", "1-1")));
    const nothing = await command();
    assert.deepEqual([nothing.code, /nothing else/.test(nothing.out)], [0, true]);
    await gates.open(gate);
    assert.equal((await ended(program, runId)).run.status, "completed");
  });

  test("knows no other node, and takes nothing but a switch", async () => {
    const post = (id: string, body: unknown) => ask(program, "POST", `/nodes/${id}/reconcile`, { body });
    assertProblem(await post("node_x", {}), 404, "node_not_found");
    assertProblem(await post("..%2f..%2fetc", { fix: true }), 404, "node_not_found");
    for (const body of [
      { fix: "yes" },
      { fix: null },
      { fixed: true },
      { fix: true, paths: ["/etc"] },
      [],
      "fix",
    ])
      assert.ok([400, 422].includes((await post(nodeId, body)).status), JSON.stringify(body));
    assert.deepEqual(await reconcile(program, nodeId), { node_id: nodeId, differences: [], has_more: false });
  });
});

describe("two programs with one database", { skip, concurrency: 1 }, () => {
  let nodes: Nodes<"a" | "b">;
  let nodeIds: Record<"a" | "b", string>;
  let gates: Gates;
  before(async () => {
    [nodes, gates] = await Promise.all([Nodes.start(["a", "b"], { filesAreShared: true }), makeGates()]);
    nodeIds = { a: await nodeIdOf(nodes.of("a")), b: await nodeIdOf(nodes.of("b")) };
  });
  after(() => Promise.all([nodes[Symbol.asyncDispose](), gates.remove()]));

  test("a port that an ended run had is free once the process is ended that holds it, whichever node is asked", async () => {
    const [a, b] = [nodes.of("a"), nodes.of("b")];
    const { run } = await completed(a, await createJob(a, graph("short", [router("in")])));
    const port = await freePorts(1);
    const url = nodes.environmentOf("a").SVC_DATABASE_URL!;
    await inPostgres(
      url,
      `UPDATE runs SET finished_at = finished_at - 60000 WHERE run_id = '${run.run_id}';
       INSERT INTO run_ports (node, port, run_id, label) VALUES ('${nodeIds.a}', ${port}, '${run.run_id}', 'web_ui')`,
    );
    const { pid, gone } = leave(nodes.homes.a, `require("net").createServer().listen(${port}, "127.0.0.1")`);
    await until("it listens", async () => {
      const socket = connect(port, "127.0.0.1");
      return new Promise<boolean>((resolve) => {
        socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
      }).finally(() => socket.destroy());
    });
    const [of, held] = [`process process ${pid}, started at`, `port port ${port}`];
    assert.deepEqual(namesIn(await reconcile(b, nodeIds.b)), []);
    const listed = namesIn(await reconcile(b, nodeIds.a));
    assert.ok(listed.length === 2 && listed[0]?.startsWith(of) && listed[1] === held, listed.join("\n"));
    const fixed = await reconcile(b, nodeIds.a, { fix: true });
    assert.deepEqual(
      fixed.differences.map((one) => one.fixed),
      [true, true],
    );
    await gone;
    assert.deepEqual(await reconcile(a, nodeIds.a), { node_id: nodeIds.a, differences: [], has_more: false });
  });

  test("nothing differs on nodes under load, and a fix disturbs none of their runs", async () => {
    const programs = { a: nodes.of("a"), b: nodes.of("b") };
    // One of these runs on each node, the whole time.
    const pipes = [gates.pipe("long-0"), gates.pipe("long-1")];
    const policies = { placement_policy: "spread" };
    const long = graph(
      "long",
      [router("in"), ...pipes.map((pipe, n) => executor(`long-${n}`, ["cat", pipe]))],
      pipes.map((_, n) => ["in", `long-${n}`] as const),
      { policies },
    );
    const longId = await startRun(programs.a, await createJob(programs.a, long));
    let begun = 0;
    await happens(
      programs.a,
      longId,
      ({ type }) => type === "sandbox_job_started" && ++begun === pipes.length,
    );
    const steps = ["one", "two", "three"] as const;
    const manifest = graph(
      "busy",
      // The one in the middle leaves something in its workspace.
      steps.map((name) => executor(name, name === "two" ? "echo x > left; sleep 0.2" : "sleep 0.1")),
      [
        ["one", "two"],
        ["two", "three"],
      ],
    );
    const jobId = await createJob(programs.a, manifest);
    const runIds = await Promise.all(
      Array.from({ length: 40 }, (_, i) => startRun(programs[i % 2 ? "a" : "b"], jobId)),
    );
    let isOver = false;
    const ends = Promise.all(runIds.map((runId) => ended(programs.a, runId))).finally(() => {
      isOver = true;
    });
    const looking = (["a", "b"] as const).map(async (asked) => {
      for (let looks = 0; looks < 2 || !isOver; looks++) {
        const through = programs[looks % 2 === 0 ? "a" : "b"];
        assert.deepEqual(namesIn(await reconcile(through, nodeIds[asked], { fix: true })), []);
      }
    });
    await Promise.all(looking);
    for (const pipe of pipes) await gates.open(pipe);
    for (const { run, of } of [...(await ends), await ended(programs.b, longId)]) {
      assert.equal(run.status, "completed");
      assert.equal(of("sandbox_job_started").length, run.run_id === longId ? pipes.length : steps.length);
    }
  });

  test("a node that has died is not there to be compared", async () => {
    const b = nodes.of("b");
    await nodes.of("a").kill();
    const post = (id: string) => ask(b, "POST", `/nodes/${id}/reconcile`, { body: {} });
    assertProblem(await post(nodeIds.a), 503, "unavailable");
    await until("it is lost", async () => (await call(b, "GET", `/nodes/${nodeIds.a}`)).status === "lost");
    assertProblem(await post(nodeIds.a), 409, "conflict");
    assertProblem(await post("node_x"), 404, "node_not_found");
  });
});
