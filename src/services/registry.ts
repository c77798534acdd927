// The registry of services: those that the open jobs of this process offer, and whether they are reachable.
//
// - An instance lives exactly as long as its job, or the command of its agent. Nothing of it is stored: after a restart
//   the instances are those of the jobs that were taken over, and none is passing before it was checked again.
// - An instance is passing only while all of its checks are (instance.ts); one without checks while it lives.
// - Changes of an instance are recorded in its job's history; a failure to do so changes nothing here.
// - The number of instances is limited; those beyond are critical, and their history has the reason.

import type { GraphNode } from "../engine/graph.ts";
import { type RequiredService, type ServiceSpec, serviceId } from "../engine/service.ts";
import type { ServiceBoard, ServiceChange, ServiceJob } from "../engine/service-port.ts";
import type { CheckParts } from "./check.ts";
import { CheckRounds } from "./check-rounds.ts";
import { ServiceInstance, type ServiceStatus, type ServiceView } from "./instance.ts";
import { ServiceIndex, type ServicePlace } from "./service-index.ts";

const INSTANCES_MAX = 10_000;
/** Per instance: a service that fails and recovers all day must not fill its run's history. */
const CHANGES_RECORDED_MAX = 1_000;

export interface RegistryParts extends CheckParts {
  /** From 0 up to, not including, 1. */
  readonly fraction: () => number;
  /** The name of this machine. */
  readonly nodeName: string;
  /** Writes a change into the job's history, unless the service is over there. */
  readonly report: (jobId: string, change: ServiceChange) => void;
}

export interface ServiceFilter {
  readonly name: string | null;
  /** All of which it must have. */
  readonly tags: readonly string[];
  readonly status: ServiceStatus | null;
  readonly runId: string | null;
}

export interface ServicePage extends ServiceFilter {
  readonly limit: number;
  /** The last one of the page before. */
  readonly after: ServicePlace | null;
}

export type Resolution =
  | { readonly kind: "resolved"; readonly service: ServiceView }
  /** Nothing of that name, tags and node is registered. */
  | { readonly kind: "unknown"; readonly reason: string }
  | { readonly kind: "not_passing"; readonly reason: string };

interface OpenJob {
  readonly job: ServiceJob;
  /** By agent; null has those of the job as a whole. */
  readonly instances: Map<string | null, ServiceInstance[]>;
}

export class ServiceRegistry implements ServiceBoard {
  readonly #parts: RegistryParts;
  readonly #jobs = new Map<string, OpenJob>();
  readonly #index = new ServiceIndex();
  readonly #rounds: CheckRounds;
  #order = 0;
  #isStopped = false;

  constructor(parts: RegistryParts) {
    this.#parts = parts;
    this.#rounds = new CheckRounds({ ...parts, onChecked: (instance) => this.#record(instance) });
  }

  /** Ends all checks; services registered from now on are not checked. */
  stop(): void {
    this.#isStopped = true;
    for (const jobId of [...this.#jobs.keys()]) this.jobClosed(jobId);
  }

  // ------------------------------------------------------------------------------------- what the engine tells

  jobOpened(job: ServiceJob): void {
    this.jobClosed(job.jobId);
    if (this.#isStopped) return;
    const open: OpenJob = { job, instances: new Map() };
    this.#jobs.set(job.jobId, open);
    this.#begin(open, null, job.graph.services);
  }

  jobClosed(jobId: string): void {
    const open = this.#jobs.get(jobId);
    if (open === undefined) return;
    this.#jobs.delete(jobId);
    for (const agentId of open.instances.keys()) this.#end(open, agentId);
  }

  agentStarted(jobId: string, node: GraphNode): void {
    const open = this.#jobs.get(jobId);
    if (open === undefined) return;
    this.#end(open, node.nodeId);
    this.#begin(open, node.nodeId, node.services);
  }

  agentEnded(jobId: string, node: GraphNode): void {
    const open = this.#jobs.get(jobId);
    if (open !== undefined) this.#end(open, node.nodeId);
  }

  #begin({ job, instances }: OpenJob, agentId: string | null, services: readonly ServiceSpec[]): void {
    const begun = services.map((spec) => this.#add(job, spec, agentId)).filter((one) => one !== null);
    if (begun.length > 0) instances.set(agentId, begun);
  }

  /** @returns null when there is no room for another one */
  #add(job: ServiceJob, spec: ServiceSpec, agentId: string | null): ServiceInstance | null {
    const { clock } = this.#parts;
    const id = serviceId(job.runId, agentId, spec);
    if (this.#index.size >= INSTANCES_MAX) {
      const reason = `this runtime looks after ${INSTANCES_MAX} services, and takes no more until some have ended`;
      const change = { type: "service_critical", agentId, serviceId: id, name: spec.name, reason } as const;
      clock.soon(() => this.#parts.report(job.jobId, change));
      return null;
    }
    const instance = new ServiceInstance({
      serviceId: id,
      spec,
      job,
      agentId,
      registeredAtMs: clock.nowMs(),
      order: ++this.#order,
    });
    this.#index.add(instance);
    if (spec.checks.length === 0) clock.soon(() => this.#record(instance));
    else this.#rounds.begin(instance);
    return instance;
  }

  #end({ instances }: OpenJob, agentId: string | null): void {
    for (const instance of instances.get(agentId) ?? []) {
      instance.end();
      this.#index.remove(instance);
    }
    instances.delete(agentId);
  }

  /** Records a status that the history does not have yet; a service that is starting has none. */
  #record(instance: ServiceInstance): void {
    const { phase, job, agentId, serviceId: id, spec, reason, recorded } = instance;
    if (instance.isOver || phase === "starting" || phase === recorded.status) return;
    if (recorded.count >= CHANGES_RECORDED_MAX) return;
    recorded.status = phase;
    recorded.count++;
    const isLast = recorded.count === CHANGES_RECORDED_MAX;
    this.#parts.report(job.jobId, {
      type: `service_${phase}`,
      agentId,
      serviceId: id,
      name: spec.name,
      reason: isLast ? `${reason} (further changes are not recorded)` : reason,
    });
  }

  // ------------------------------------------------------------------------------------- what others ask

  get nodeName(): string {
    return this.#parts.nodeName;
  }

  /** A page of the instances, in the order of their names. */
  list({ limit, after, ...filter }: ServicePage): readonly ServiceView[] {
    return this.#index.page(limit, after, (instance) => isWanted(instance, filter));
  }

  /** The newest passing instance of a name that has all of the tags, on the node that is asked for. */
  resolve(wanted: RequiredService): Resolution {
    const { nodeName } = this.#parts;
    const what = described(wanted);
    if (wanted.node !== null && wanted.node !== nodeName) {
      return { kind: "unknown", reason: `There is no ${what}: this runtime's node is "${nodeName}".` };
    }
    const named = this.#index.named(wanted.name);
    const matching = named.filter(({ spec }) => wanted.tags.every((tag) => spec.tags.includes(tag)));
    if (matching.length === 0) {
      const others = named.length > 0 ? " (others of this name have other tags)" : "";
      return { kind: "unknown", reason: `There is no ${what}${others}. Start a job that offers it.` };
    }
    const newestFirst = matching.toSorted((a, b) => b.order - a.order);
    const passing = newestFirst.find(({ status }) => status === "passing");
    if (passing !== undefined) return { kind: "resolved", service: passing };
    const reason = `No ${what} is passing: ${newestFirst[0]?.reason}. Wait until its checks pass.`;
    return { kind: "not_passing", reason };
  }

  /** Those of the required services that are not passing, each with a whole sentence that says why. */
  unmet(required: readonly RequiredService[]): readonly { service: string; reason: string }[] {
    return required.flatMap((wanted) => {
      const found = this.resolve(wanted);
      return found.kind === "resolved" ? [] : [{ service: wanted.name, reason: found.reason }];
    });
  }
}

function isWanted(instance: ServiceInstance, { name, tags, status, runId }: ServiceFilter): boolean {
  const { spec, job } = instance;
  return (
    (name === null || spec.name === name) &&
    tags.every((tag) => spec.tags.includes(tag)) &&
    (runId === null || job.runId === runId) &&
    (status === null || instance.status === status)
  );
}

function described({ name, tags, node }: RequiredService): string {
  const ofTags = tags.length === 0 ? "" : ` with the tags ${tags.join(", ")}`;
  const ofNode = node === null ? "" : ` on the node "${node}"`;
  return `service "${name}"${ofTags}${ofNode}`;
}
