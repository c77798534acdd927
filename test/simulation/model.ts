// A large cluster with many jobs, as a model: the real engines, memberships and task placement, on one simulated
// database that counts what it is asked. Clients submit to any node; each job is two commands, one after the other. In the
// middle of the run one node is lost for good, with all that it has.
//
// It shows how evenly work is spread, and how statements and messages per job grow with the number of nodes. Whether all is
// done once is what the other worlds check (scenario.ts, cluster-tasks.test.ts); here every job must end as completed.

import assert from "node:assert/strict";
import type { Graph, PlacementPolicy } from "../../src/engine/graph.ts";
import { idSource } from "../../src/engine/ids.ts";
import { parseManifest } from "../../src/engine/manifest.ts";
import { defaultTerms } from "../../src/engine/share.ts";
import { ModelJournal } from "./model-journal.ts";
import { type Cluster, COMMAND_MS, LEASE_MS, ModelNode, RENEW_EVERY_MS, SLOTS } from "./model-node.ts";
import { type Living, ModelTime } from "./model-time.ts";
import { Random } from "./random.ts";
import { SimNodes } from "./sim-nodes.ts";

const COMMANDS_PER_JOB = 2;
/** How much of the cluster's slots is in use. */
const LOAD = 0.7;
/** One way, to the database and between nodes. */
const WAY_MS = 1;
/** Before it, sessions are made, and work is not spread yet. */
const WARM_UP_MS = 5_000;

export interface ModelOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly jobs: number;
  readonly placement: PlacementPolicy;
}

export interface ModelOutcome {
  /** Of simulated time, until the last job was submitted; all that follows is up to then. */
  readonly seconds: number;
  /** How far the node with the most, and the one with the fewest attempts is from the mean of those that stayed. */
  readonly imbalance: number;
  readonly statementsPerJob: number;
  readonly messagesPerJob: number;
  /** Attempts that ran on another node than their job's. */
  readonly elsewhere: number;
  /** Jobs of the lost node that others took over, and by how many nodes. */
  readonly takenOver: number;
  readonly takenOverBy: number;
}

/** @throws AssertionError when a job did not end as completed */
export async function runModel(options: ModelOptions): Promise<ModelOutcome> {
  return await new Model(options).run();
}

class Model implements Cluster {
  readonly time = new ModelTime();
  readonly random: Random;
  readonly journal: ModelJournal;
  readonly table: SimNodes;
  readonly nodes: readonly ModelNode[];
  readonly id: () => string;
  #messages = 0;
  #statements = 0;
  readonly #graph: Graph;
  readonly #manifestJson: string;
  readonly #jobs: number;

  constructor({ seed, nodes, jobs, placement }: ModelOptions) {
    this.random = new Random(seed);
    this.#jobs = jobs;
    this.id = idSource(
      () => this.time.nowMs,
      () => this.random.fraction(),
    );
    this.table = new SimNodes(() => this.time.nowMs);
    this.journal = new ModelJournal(this.table);
    const manifest = {
      manifest_version: "1.0",
      graph_id: "model",
      policies: { placement_policy: placement, recovery_mode: "cluster_recover" },
      entrypoints: ["first"],
      initial_inputs: { first: [{}] },
      nodes: ["first", "second"].map((node_id) => ({
        node_id,
        agent_type: "executor",
        config: { command: ["work"] },
      })),
      edges: [{ from_node: "first", to_node: "second" }],
    };
    const parsed = parseManifest(manifest);
    assert.ok(parsed.kind !== "invalid", JSON.stringify(parsed));
    this.#graph = parsed.graph;
    this.#manifestJson = JSON.stringify(manifest);
    this.nodes = Array.from({ length: nodes }, (_, i) => new ModelNode(this, `node-${i + 1}`));
  }

  async run(): Promise<ModelOutcome> {
    const { time, nodes, journal } = this;
    const began = time.nowMs;
    for (const node of nodes) time.plan(this.random.below(RENEW_EVERY_MS), node, () => void node.start());
    await this.#until(() => nodes.every(({ isReady }) => isReady));
    const jobsPerMs =
      (nodes.length * SLOTS * LOAD) / (COMMANDS_PER_JOB * ((COMMAND_MS.from + COMMAND_MS.to) / 2));
    const submitting = { submitted: 0, due: 0 };
    const warmFromMs = time.nowMs + WARM_UP_MS;
    const lost = nodes.at(-1)!;
    while (submitting.submitted < this.#jobs) {
      submitting.due += jobsPerMs;
      for (; submitting.due >= 1 && submitting.submitted < this.#jobs; submitting.due--) {
        this.#submit();
        submitting.submitted++;
      }
      if (lost.isAlive && submitting.submitted >= this.#jobs / 2) lost.kill();
      if (time.nowMs === warmFromMs) for (const node of nodes) node.attempts = 0;
      await time.step();
    }
    const counts = nodes.filter((node) => node !== lost).map(({ attempts }) => attempts);
    const seconds = (time.nowMs - began) / 1_000;
    const statements = this.#statements;
    const messages = this.#messages;
    await this.#until(() => journal.ended.completed === this.#jobs);
    assert.deepEqual(journal.ended, { completed: this.#jobs, other: 0 });
    const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
    return {
      seconds,
      imbalance: Math.max(...counts.map((count) => Math.abs(count - mean))) / mean,
      statementsPerJob: statements / this.#jobs,
      messagesPerJob: messages / this.#jobs,
      elsewhere: nodes.reduce((sum, { elsewhere }) => sum + elsewhere, 0),
      takenOver: journal.takenOver.size,
      takenOverBy: new Set(journal.takenOver.values()).size,
    };
  }

  async #until(isDone: () => boolean): Promise<void> {
    const lastMs = this.time.nowMs + 10 * LEASE_MS;
    for (; !isDone(); await this.time.step())
      assert.ok(this.time.nowMs < lastMs, "the cluster comes to rest");
  }

  /** By a client, which repeats what was not acknowledged before the node was lost. */
  #submit(): void {
    const node = this.random.pick(this.nodes.filter(({ isAlive }) => isAlive));
    const id = this.id();
    const jobId = `model-${id}`;
    node.lostSubmissions.set(jobId, () => this.#submit());
    const submission = {
      graph: this.#graph,
      identity: { jobId, runId: `run_${id}`, definitionId: null },
      manifestJson: this.#manifestJson,
      bundleFingerprint: null,
      hasOwnPayload: false,
      configurationJson: null,
      trace: null,
      ...defaultTerms,
    };
    void node.engine.submit(submission).then(() => node.lostSubmissions.delete(jobId));
  }

  carry(arrive: () => void): void {
    this.#messages++;
    this.time.plan(WAY_MS, null, arrive);
  }

  ask<T>(by: Living, what: () => T | Promise<T>): Promise<T> {
    this.#statements++;
    return new Promise((resolve, reject) => {
      const run = async () => {
        try {
          const answer = await what();
          this.time.plan(WAY_MS, by, () => resolve(answer));
        } catch (error) {
          reject(error);
        }
      };
      this.time.plan(WAY_MS, null, () => void run());
    });
  }
}
