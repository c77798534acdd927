// The registry of this node's services: those that its open jobs offer, and whether they are reachable.
//
// - An instance lives exactly as long as its job, or the command of its agent. Nothing of it is stored: after a restart
//   the instances are those of the jobs that were taken over, and none is passing before it was checked again.
// - An instance is passing only while all of its checks are (instance.ts); one without checks while it lives.
// - Changes of an instance are recorded in its job's history; a failure to do so changes nothing here.
// - The number of instances is limited; those beyond are critical, and their history has the reason.
// - Commands that offer services run on the node of their job, so that it is the one that checks them.

import type { GraphNode } from "../engine/graph.ts";
import { type ServiceSpec, serviceId } from "../engine/service.ts";
import type { ServiceBoard, ServiceChange, ServiceJob } from "../engine/service-port.ts";
import { isLoopback } from "../lib/addresses.ts";
import type { CheckParts } from "./check.ts";
import { CheckRounds } from "./check-rounds.ts";
import { ServiceInstance } from "./instance.ts";
import { ServiceIndex, type ServicePlace } from "./service-index.ts";
import { calledAt, type ServiceStatus, type ServiceView } from "./service-view.ts";

const INSTANCES_MAX = 10_000;
/** Per instance: a service that fails and recovers all day must not fill its run's history. */
const CHANGES_RECORDED_MAX = 1_000;
/** How long who asks for checks waits for them. */
const CHECKED_WITHIN_MS = 2_500;

export interface RegistryParts extends CheckParts {
  /** From 0 up to, not including, 1. */
  readonly fraction: () => number;
  /** The name of this node, and where other nodes reach its machine; null: there are none. */
  readonly node: { readonly name: string; readonly host: string | null };
  /** A service as it is on this node, which may have taken its job over from another one. */
  readonly asHere: (spec: ServiceSpec, agentId: string | null) => ServiceSpec;
  /** Whether what an agent offers asks browsers for the run's key. */
  readonly asksForKey: (agentId: string | null) => boolean;
  /** Writes a change into the job's history, unless the service is over there. */
  readonly report: (jobId: string, change: ServiceChange) => void;
}

export interface ServiceFilter {
  readonly name: string | null;
  /** All of which it must have. */
  readonly tags: readonly string[];
  readonly status: ServiceStatus | null;
  readonly runId: string | null;
  /** Services of runs of this job of the gateway; absent: of all. */
  readonly definitionId?: string | null;
}

export interface ServicePage extends ServiceFilter {
  readonly limit: number;
  /** The last one of the page before. */
  readonly after: ServicePlace | null;
}

/** What is looked for. */
export interface Wanted {
  readonly name: string;
  /** All of which it must have. */
  readonly tags: readonly string[];
  /** Runs whose services are not to be found. */
  readonly leftOut: readonly string[];
  /** Whether what only its own node reaches will not do; an address for browsers beyond it will, if there is no other. */
  readonly fromElsewhere: boolean;
}

export type Found =
  | { readonly kind: "passing"; readonly service: ServiceView }
  /** @param reason of the newest one */
  | { readonly kind: "not_passing"; readonly reason: string }
  /** Those that pass listen on loopback alone, for browsers too. */
  | { readonly kind: "out_of_reach" }
  /** `hasOthers`: there are some of that name, with other tags. */
  | { readonly kind: "none"; readonly hasOthers: boolean };

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

  /** The jobs that it has open. */
  get jobs(): readonly ServiceJob[] {
    return Array.from(this.#jobs.values(), ({ job }) => job);
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
  #add(job: ServiceJob, declared: ServiceSpec, agentId: string | null): ServiceInstance | null {
    const { clock, asHere } = this.#parts;
    const spec = asHere(declared, agentId);
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

  /** A page of the instances, in the order of their names. */
  list({ limit, after, ...filter }: ServicePage): readonly ServiceView[] {
    return this.#page(limit, after, filter).map((instance) => this.#viewOf(instance));
  }

  /** The same, checked now: as they are once each check has a new result, or when that takes too long. */
  async check(page: ServicePage): Promise<readonly ServiceView[]> {
    // What they are now may not be what they are then.
    const asked = this.#page(page.limit, page.after, { ...page, status: null });
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(CHECKED_WITHIN_MS, resolve);
    await Promise.race([isLate, Promise.all(asked.map((instance) => this.#rounds.now(instance)))]);
    cancel();
    return asked
      .filter((instance) => !instance.isOver && isWanted(instance, page))
      .map((instance) => this.#viewOf(instance));
  }

  #page(limit: number, after: ServicePlace | null, filter: ServiceFilter): readonly ServiceInstance[] {
    return this.#index.page(limit, after, (instance) => isWanted(instance, filter));
  }

  /** The newest passing instance of a name that has all of the tags. */
  find({ name, tags, leftOut, fromElsewhere }: Wanted): Found {
    const named = this.#index.named(name);
    const matching = named.filter(({ spec }) => tags.every((tag) => spec.tags.includes(tag)));
    const newestFirst = matching.toSorted((a, b) => b.order - a.order);
    const [newest] = newestFirst;
    if (newest === undefined) return { kind: "none", hasOthers: named.length > 0 };
    const found = newestFirst.filter(({ job }) => !leftOut.includes(job.runId));
    if (found.length === 0)
      return { kind: "not_passing", reason: "its deployment lets no instance serve now" };
    const passing = found.filter(({ status }) => status === "passing");
    if (passing.length === 0) return { kind: "not_passing", reason: (found[0] ?? newest).reason };
    const reached = fromElsewhere
      ? (passing.find((instance) => !isLoopback(this.#addressOf(instance))) ??
        passing.find(({ spec }) => spec.publicUrl !== null && !isLoopback(hostOfUrl(spec.publicUrl))))
      : passing[0];
    if (reached === undefined) return { kind: "out_of_reach" };
    return { kind: "passing", service: this.#viewOf(reached) };
  }

  #addressOf({ spec }: ServiceInstance): string {
    return calledAt(spec.address, this.#parts.node.host);
  }

  #viewOf(instance: ServiceInstance): ServiceView {
    const { serviceId: id, spec, job, agentId, status, checks, registeredAtMs, updatedAtMs } = instance;
    const { name, tags, meta, port, publicUrl } = spec;
    const { jobId, runId, definitionId } = job;
    return {
      serviceId: id,
      name,
      status,
      tags,
      meta,
      address: this.#addressOf(instance),
      port,
      publicUrl,
      asksForKey: this.#parts.asksForKey(agentId),
      jobId,
      runId,
      definitionId,
      agentId,
      node: this.#parts.node.name,
      checks,
      registeredAtMs,
      updatedAtMs,
    };
  }
}

const hostOfUrl = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");

function isWanted(instance: ServiceInstance, filter: ServiceFilter): boolean {
  const { name, tags, status, runId, definitionId = null } = filter;
  const { spec, job } = instance;
  return (
    (name === null || spec.name === name) &&
    tags.every((tag) => spec.tags.includes(tag)) &&
    (runId === null || job.runId === runId) &&
    (definitionId === null || job.definitionId === definitionId) &&
    (status === null || instance.status === status)
  );
}
