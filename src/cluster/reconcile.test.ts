// What counts as a difference, and what a fix does, on a node that a test plays.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { slotsKey } from "../engine/ports.ts";
import type { ServiceJob } from "../engine/service-port.ts";
import type { RunningAttempt, TaskOutcome, TaskRef } from "../engine/task-port.ts";
import type { LeftFolders } from "../execution/leftovers.ts";
import type { ProcessEntry } from "../execution/process/process-table.ts";
import { Reconciler } from "./reconcile.ts";

const HOME = "/srv/home";

const ref = (jobId: string, taskSeq = 1): TaskRef => ({ jobId, taskSeq, attempt: 1 });
const attempt = (jobId: string, taskSeq?: number) => ({ ref: ref(jobId, taskSeq), runId: `run-${jobId}` });
const process = (pid: number): ProcessEntry => ({
  pid,
  parentPid: 1,
  groupId: pid,
  start: `${pid}0`,
  zombie: false,
  mark: null,
});

/** A node whose parts are what a test sets; what is done to it is written down. */
class PlayedNode {
  unavailable: string | null = null;
  openJobs: string[] = [];
  /** Of open jobs, by the engine; and those that run. */
  waitedFor: (RunningAttempt & { readonly node: string | null })[] = [];
  running: RunningAttempt[] = [];
  foreign: RunningAttempt[] = [];
  services: string[] = [];
  processes: ProcessEntry[] = [];
  folders: LeftFolders = { runs: [], attempts: [], present: 100, isComplete: true };
  held: { readonly port: number; readonly runId: string }[] = [];
  readonly done: unknown[][] = [];
  /** What happens between the two looks, and when a process is ended. */
  between = () => {};
  onEnd = () => {};

  reconcile(fix = false) {
    return this.reconciler().reconcile(fix);
  }

  reconciler() {
    const { done } = this;
    const note =
      <Answer>(verb: string, answer: Answer) =>
      (...given: readonly unknown[]) => {
        done.push([verb, ...given]);
        return answer;
      };
    const holds = (jobId: string) => this.openJobs.includes(jobId);
    const self = this;
    return new Reconciler({
      home: HOME,
      engine: {
        attempts: () => this.waitedFor.values() as Generator<(typeof this.waitedFor)[number]>,
        holds,
        settled: async () => this.between(),
        get unavailable() {
          return self.unavailable;
        },
      },
      runner: {
        get attempts() {
          return self.running;
        },
        has: (one) => this.running.some((other) => slotsKey(other.ref) === slotsKey(one)),
        stop: note("stop", undefined),
        leftovers: {
          processes: async () => this.processes,
          endProcess: async (entry: ProcessEntry) => {
            done.push(["end", entry]);
            this.onEnd();
            return true;
          },
          folders: async () => this.folders,
          removeRun: note("remove run", Promise.resolve(true)),
          removeAttempt: note("remove attempt", Promise.resolve(true)),
        } as never,
      },
      foreign: () => this.foreign,
      reports: { taskEnded: (one: TaskRef, { kind }: TaskOutcome) => void done.push(["ended", one, kind]) },
      services: {
        get jobs() {
          return self.services.map((jobId) => ({ jobId, runId: `run-${jobId}` }) as ServiceJob);
        },
        jobClosed: note("close", undefined),
      },
      runsThere: async () => new Set(),
      heldPorts: async () => this.held,
      clock: {
        nowMs: () => 0,
        steadyMs: () => 0,
        soon: (run) => void run(),
        after: (_ms, run) => {
          queueMicrotask(run);
          return () => {};
        },
      },
      log: { warn: () => {}, error: () => {} },
    });
  }

  async kinds(fix = false) {
    const { differences } = await this.reconcile(fix);
    return differences.map(({ kind, where, isFixed }) => [kind, where, isFixed]);
  }
}

describe("a node", () => {
  test("without differences has none: what open jobs wait for runs, here or where it was placed", async () => {
    const node = new PlayedNode();
    node.openJobs = ["a"];
    node.running = [attempt("a"), attempt("of-another-node")];
    node.waitedFor = [
      { ...attempt("a"), node: null },
      { ...attempt("a", 2), node: "elsewhere" },
    ];
    node.foreign = [attempt("of-another-node")];
    node.services = ["a"];
    assert.deepEqual(await node.reconcile(true), { differences: [], hasMore: false });
    assert.deepEqual(node.done, []);
  });

  test("lists what differs, and changes nothing unless it is asked to", async () => {
    const node = new PlayedNode();
    node.openJobs = ["a"];
    node.processes = [process(7)];
    node.running = [attempt("gone")];
    node.waitedFor = [{ ...attempt("a"), node: null }];
    node.foreign = [attempt("lost")];
    node.services = ["gone"];
    node.folders = { ...node.folders, runs: ["run_x"], attempts: [`${HOME}/runs/r/agents/a/attempts/1-1`] };
    node.held = [{ port: 61_000, runId: "run_y" }];
    const found = [
      ["process", "process 7, started at 70"],
      ["attempt", "run run-gone, task 1, attempt 1"],
      ["attempt", "run run-a, task 1, attempt 1"],
      ["attempt", "run run-lost, task 1, attempt 1"],
      ["service", "run run-gone"],
      ["workspace", "runs/run_x"],
      ["workspace", "runs/r/agents/a/attempts/1-1"],
      ["port", "port 61000"],
    ] as const;
    assert.deepEqual(
      await node.kinds(),
      found.map((one) => [...one, false]),
    );
    assert.deepEqual(node.done, []);
    assert.deepEqual(
      await node.kinds(true),
      // Something listens on the port still.
      found.map(([kind, where]) => [kind, where, kind !== "port"]),
    );
    assert.deepEqual(node.done, [
      ["end", process(7)],
      ["stop", ref("gone")],
      ["ended", ref("a"), "interrupted"],
      ["ended", ref("lost"), "interrupted"],
      ["close", "gone"],
      ["remove run", "run_x"],
      ["remove attempt", `${HOME}/runs/r/agents/a/attempts/1-1`],
    ]);
  });

  test("has no difference in what begins or ends between the two looks", async () => {
    const node = new PlayedNode();
    node.openJobs = ["a"];
    node.processes = [process(7)];
    node.running = [attempt("ends")];
    node.waitedFor = [{ ...attempt("a"), node: null }];
    node.between = () => {
      node.processes = [process(8)];
      node.running = [attempt("a"), attempt("begins")];
    };
    assert.deepEqual(await node.kinds(true), []);
  });

  test("is looked at once more before something is fixed", async () => {
    const node = new PlayedNode();
    node.processes = [process(7)];
    node.running = [attempt("a")];
    node.services = ["a"];
    node.onEnd = () => {
      node.openJobs = ["a"];
    };
    assert.deepEqual(await node.kinds(true), [
      ["process", "process 7, started at 70", true],
      ["attempt", "run run-a, task 1, attempt 1", true],
      ["service", "run run-a", true],
    ]);
    assert.deepEqual(node.done, [["end", process(7)]]);
  });

  test("whose jobs are given up, or that cannot write, is not compared", async () => {
    const node = new PlayedNode();
    node.unavailable = "The lease of this node was not renewed in time";
    node.running = [attempt("given-up")];
    await assert.rejects(node.reconcile(true), { name: "EngineUnavailable", message: /lease/ });
    node.unavailable = null;
    node.between = () => {
      node.unavailable = "It is stopping.";
    };
    await assert.rejects(node.reconcile(true), { name: "EngineUnavailable" });
    assert.deepEqual(node.done, []);
  });

  test("keeps the folders of runs that the database does not know, when they are most of all", async () => {
    const node = new PlayedNode();
    node.folders = { ...node.folders, runs: ["a", "b", "c"], present: 5 };
    const { differences } = await node.reconcile(true);
    assert.ok(differences.every(({ isFixed, fix }) => !isFixed && /gc --confirm/.test(fix)));
    assert.deepEqual(node.done, []);
    node.folders = { ...node.folders, present: 6 };
    assert.ok((await node.reconcile(true)).differences.every(({ isFixed }) => isFixed));
  });

  test("is compared once at a time, and few requests wait for that", async () => {
    const reconciler = new PlayedNode().reconciler();
    const asked = Array.from({ length: 8 }, () => reconciler.reconcile(false));
    await assert.rejects(reconciler.reconcile(false), { name: "DomainError", code: "conflict" });
    await Promise.all(asked);
    assert.deepEqual(await reconciler.reconcile(false), { differences: [], hasMore: false });
  });

  test("says when there may be more, and fixes no more than it lists", async () => {
    const node = new PlayedNode();
    node.services = Array.from({ length: 201 }, (_, i) => `job-${i}`);
    const { differences, hasMore } = await node.reconcile(true);
    assert.deepEqual([differences.length, hasMore, node.done.length], [200, true, 200]);
    node.services = [];
    node.folders = { ...node.folders, isComplete: false };
    assert.deepEqual(await node.reconcile(), { differences: [], hasMore: true });
  });
});
