// A registry that makes up what it finds: services pass and fail by chance, also when they are long over. It judges what
// the engine tells it:
//
// I10. A job is told as open once, and as closed once; a command of an agent begins while its job is open, and ends
//      before it begins again. What begins is in the journal by then.

import assert from "node:assert/strict";
import type { GraphNode } from "../../src/engine/graph.ts";
import { type ServiceSpec, serviceId } from "../../src/engine/service.ts";
import type { ServiceBoard, ServiceJob } from "../../src/engine/service-port.ts";
import { parse } from "./checker.ts";
import type { Process, World } from "./world.ts";

const SPAN_MS = 2_000;

export class SimServices implements ServiceBoard {
  readonly #world: World;
  readonly #owned: () => Process;
  /** Agents with a command that runs, by open job. */
  readonly #open = new Map<string, { readonly job: ServiceJob; readonly agents: Set<string> }>();

  constructor(world: World, owned: () => Process) {
    this.#world = world;
    this.#owned = owned;
  }

  jobOpened(job: ServiceJob): void {
    assert.ok(!this.#open.has(job.jobId), `I10: ${job.jobId} was opened twice`);
    this.#open.set(job.jobId, { job, agents: new Set() });
    for (const spec of job.graph.services) this.#begin(job, spec, null);
  }

  jobClosed(jobId: string): void {
    // Of a job that another process took before this one had told that it is open, only the end is told.
    this.#open.delete(jobId);
  }

  agentStarted(jobId: string, { nodeId, services }: GraphNode): void {
    const open = this.#open.get(jobId);
    assert.ok(open !== undefined, `I10: a command of ${jobId} began, and the job is not open`);
    assert.ok(!open.agents.has(nodeId), `I10: ${nodeId} of ${jobId} began twice`);
    open.agents.add(nodeId);
    for (const spec of services) this.#begin(open.job, spec, nodeId);
  }

  agentEnded(jobId: string, { nodeId }: GraphNode): void {
    assert.ok(
      this.#open.get(jobId)?.agents.delete(nodeId),
      `I10: ${nodeId} of ${jobId} ended and never began`,
    );
  }

  #begin(job: ServiceJob, spec: ServiceSpec, agentId: string | null): void {
    const id = serviceId(job.runId, agentId, spec);
    const stored = this.#world.journal.jobs.get(job.jobId)?.events.map(parse) ?? [];
    const isStored = stored.some(
      ({ type, payload }) => type === "service_registered" && payload.service_id === id,
    );
    assert.ok(isStored, `I10: ${spec.name} of ${job.jobId} began before that was stored`);
    const { random } = this.#world;
    for (let times = random.below(4); times > 0; times--) {
      const type = random.pick(["service_passing", "service_critical"] as const);
      const change = { type, agentId, serviceId: id, name: spec.name, reason: "by chance" };
      this.#world.plan(random.between(0, SPAN_MS), this.#owned(), () =>
        this.#owned().engine.serviceChanged(job.jobId, change),
      );
    }
  }
}
