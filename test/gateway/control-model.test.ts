// Random sequences of run control agree with a model of the matrix (CONTRACTS §3), over the real socket: runs that a
// sensor holds open, and some that end by themselves.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { fc } from "../support/fast-check.ts";
import { ask, assertProblem, call, ended, happens, startRun, uploadBundle } from "../support/gateway-api.ts";
import { graph, module, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let program: Program;
before(async () => {
  program = await startGatewayHere();
});
after(() => program.stop());

type Status = "running" | "paused" | "completed" | "failed" | "cancelled";
type Desired = "running" | "paused" | "cancelled";

type Step =
  | { readonly kind: "start"; readonly end: "held" | "completes" | "fails" }
  | { readonly kind: "want"; readonly run: number; readonly desired: Desired }
  | { readonly kind: "all"; readonly desired: Desired };

/** What the matrix says: the status afterwards, or null for 409. */
function next(status: Status, desired: Desired): Status | null {
  if (status === "completed" || status === "failed") return null;
  if (status === "cancelled") return desired === "cancelled" ? "cancelled" : null;
  return desired;
}

const isOpen = (status: Status) => status === "running" || status === "paused";
const actions = { running: "resume", paused: "pause", cancelled: "cancel" } as const;

/** A sensor holds every run open; the inputs say whether it is released, or the run fails. */
const MODULE = `export async function handle({ body }) {
  if (body.end === "fails") throw new Error("as it was told");
  return { emit: body.end === "completes" ? [{ type: "go", body: {} }] : [] };
}`;
const toldManifest = graph(
  "told",
  [module("in", { module: "in.mjs" }), sensor("wait")],
  [["in", "wait", "go"]],
);

const desiredStates = fc.constantFrom<Desired>("running", "paused", "cancelled");
const steps = fc.array(
  fc.oneof(
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("start" as const),
        end: fc.constantFrom("held", "held", "completes", "fails"),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant("want" as const), run: fc.nat(5), desired: desiredStates }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("all" as const), desired: desiredStates }) },
  ),
  { minLength: 1, maxLength: 14 },
);

/** The runs of one job as they should be, and the steps that are taken with them. */
class Control {
  readonly #jobId: string;
  readonly #model = new Map<string, Status>();

  constructor(jobId: string) {
    this.#jobId = jobId;
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case "start":
        return this.#start(step.end);
      case "want":
        return this.#want([...this.#model.keys()][step.run], step.desired);
      case "all":
        return this.#all(step.desired);
      default:
        return step satisfies never;
    }
  }

  async #start(end: "held" | "completes" | "fails"): Promise<void> {
    const runId = await startRun(program, this.#jobId, { inputs: { end } });
    if (end === "held") await happens(program, runId, "agent_message_received");
    else await ended(program, runId);
    this.#model.set(runId, end === "held" ? "running" : end === "fails" ? "failed" : "completed");
  }

  async #want(runId: string | undefined, desired: Desired): Promise<void> {
    if (runId === undefined) return;
    const answer = await ask(program, "PATCH", `/runs/${runId}`, { body: { desired_state: desired } });
    const expected = next(this.#model.get(runId) ?? "failed", desired);
    if (expected === null) {
      assertProblem(answer, 409, "invalid_transition");
      return;
    }
    assert.equal(answer.status, 200, answer.text);
    await this.#settle(runId, expected);
    if (expected !== "cancelled") assert.equal(answer.body.status, expected);
  }

  async #all(desired: Desired): Promise<void> {
    const open = [...this.#model].flatMap(([runId, status]) => (isOpen(status) ? [runId] : []));
    const answer = await ask(program, "POST", `/jobs/${this.#jobId}/${actions[desired]}`);
    if (open.length === 0) {
      assertProblem(answer, 409, "invalid_transition");
      return;
    }
    assert.equal(answer.status, 200, answer.text);
    const runs = answer.body.runs as readonly JsonObject[];
    assert.deepEqual(
      runs.map(({ run_id }) => run_id),
      open,
    );
    for (const runId of open) await this.#settle(runId, desired);
  }

  async #settle(runId: string, status: Status): Promise<void> {
    this.#model.set(runId, status);
    if (status === "cancelled") await ended(program, runId);
  }

  /** All runs are as the model says. */
  async check(): Promise<void> {
    const { items } = await call(program, "GET", `/jobs/${this.#jobId}/runs?page_size=200`);
    const seen = (items as readonly JsonObject[]).map(({ run_id, status }) => [run_id, status]).toReversed();
    assert.deepEqual(seen, [...this.#model]);
    const { active_runs } = await call(program, "GET", `/jobs/${this.#jobId}`);
    assert.equal(active_runs, [...this.#model.values()].filter(isOpen).length);
  }
}

test("random sequences of run control agree with a model of the matrix", async () => {
  const bundleId = await uploadBundle(program, toldManifest, { "payloads/in.mjs": MODULE });
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      const { job_id } = await call(program, "POST", "/jobs", { bundle_id: bundleId });
      const control = new Control(String(job_id));
      for (const step of taken) {
        await control.take(step);
        await control.check();
      }
      const headers = { "if-match": "*" };
      const removed = await ask(program, "DELETE", `/jobs/${job_id}?force=true`, { headers });
      assert.equal(removed.status, 204, removed.text);
    }),
    { numRuns: 20, endOnFailure: true },
  );
});
