// Brings deployments on: takes their steps, one transaction each, until there is nothing to do.
//
// - What is to be done is in the records. A step that was computed from an older state is not written, so two programs, or a
//   crash at any moment, neither start an instance twice nor forget one.
// - It is woken by the events of the instances' runs (on whatever node they are), by changes of owners, and by deadlines; and it
//   looks at everything every LOOK_MS, because signals may be lost.
// - Of several programs one is on duty. Another one takes the first step for an owner who has asked it, no more.
// - Waits are counted by a clock that nobody sets. When somebody else has changed a deployment, they begin anew.

import { eventType } from "../engine/event.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import { WorkQueue } from "../operations/work-queue.ts";
import type { EventFeed } from "../runs/feed.ts";
import type { Services } from "../services/services.ts";
import { deletedLine, withEvents } from "./events.ts";
import { type Observed, versionOf } from "./health.ts";
import type { ControllerRecords, ControllerWrites, InsertInstance, InstanceRuns } from "./instance-runs.ts";
import { observe } from "./observing.ts";
import { type Place, type PlacedInstance, placed } from "./places.ts";
import type { Deployment, Instance } from "./records.ts";
import type { NewInstance } from "./rollout.ts";
import { restarted, type Step, step } from "./step.ts";

/** How soon changes that another program has made are seen, and a program that was on duty is missed. */
const ROUND_MS = 2_000;
/** Also how soon the first deployment is seen that another program has made. */
const LOOK_MS = 10_000;
const RETRY_MS = 1_000;
const PAGE = 500;
const AT_ONCE = 4;
/** Of the runs of instances, these events are waited for. */
const WATCHED = /^(?:service|job)_/;

/** What is counted, for the metrics of a program (src/observability). */
export interface DeploymentMeter {
  /** A step is on disk. */
  stepped(before: Deployment, after: Deployment): void;
}

export interface ControllerParts<Writes extends ControllerWrites> {
  readonly records: ControllerRecords<Writes>;
  readonly runs: InstanceRuns<Writes>;
  readonly services: Pick<Services, "list">;
  readonly feed: Pick<EventFeed, "subscribe" | "published" | "isListened" | "positionOf">;
  /** Why no run is to begin on this node; null while they are. */
  readonly closed: () => string | null;
  /** Whether this program is to look after all deployments, for so long from now on. */
  readonly takeDuty: (forMs: number) => Promise<boolean>;
  readonly meter: DeploymentMeter;
  readonly clock: Clock;
  readonly log: EngineLog;
}

/** A deployment that this program looks after. */
interface Known {
  /** Of the state that was seen last; 0: none yet. */
  changes: number;
  lookedAtMs: number;
  cancelTimer: () => void;
  /** How to stop listening to the runs of its instances, by their runtime jobs. */
  readonly watched: Map<string, () => void>;
}

interface PreparedStart<Writes> extends PlacedInstance {
  readonly insert: InsertInstance<Writes>;
}

export class DeploymentController<Writes extends ControllerWrites> {
  readonly #parts: ControllerParts<Writes>;
  readonly #steps: WorkQueue;
  readonly #known = new Map<string, Known>();
  readonly #startedAtMs: number;
  /** Those that somebody follows here, and their last events, as of the last round. */
  #streamed = new Map<string, number>();
  #isOnDuty = false;
  #cancelRound = () => {};
  #round: Promise<void> = Promise.resolve();
  #isLooking = false;
  /** Whether there is a deployment for sure, if the records had none. */
  #hasChanged = false;
  #isStopped = true;

  constructor(parts: ControllerParts<Writes>) {
    this.#parts = parts;
    const { clock, log } = parts;
    this.#startedAtMs = clock.nowMs() - clock.steadyMs();
    this.#steps = new WorkQueue({
      what: "the step of a deployment",
      keyName: "deployment_id",
      atOnceMax: AT_ONCE,
      work: (deploymentId, signal) => this.#advance(deploymentId, signal),
      clock,
      log,
    });
  }

  /** Wall time as it would be if nobody had set the clock since the start. */
  nowMs(): number {
    return this.#startedAtMs + this.#parts.clock.steadyMs();
  }

  start(): void {
    this.#isStopped = false;
    this.#roundIn(0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelRound();
    await this.#round;
    await this.#steps.stop();
    for (const deploymentId of [...this.#known.keys()]) this.#forget(deploymentId);
  }

  /** To be called when a change of its owner is on disk, with the events of that. */
  changed({ deploymentId, changes, eventSeq }: Deployment, lines: readonly string[]): void {
    this.#parts.feed.published(deploymentId, eventSeq - lines.length + 1, lines);
    const known = this.#known.get(deploymentId);
    if (known?.changes === changes - 1) known.changes = changes;
    if (this.#isStopped) return;
    this.#steps.add(deploymentId);
    this.#hasChanged = true;
    if (this.#isOnDuty || this.#isLooking) return;
    this.#cancelRound();
    this.#roundIn(0);
  }

  #roundIn(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancelRound = this.#parts.clock.after(delayMs, () => {
      this.#round = this.#lookAround();
    });
  }

  async #lookAround(): Promise<void> {
    const { records, closed, takeDuty, log } = this.#parts;
    let delayMs = RETRY_MS;
    this.#isLooking = true;
    try {
      this.#hasChanged = false;
      // Taking it is a write: without deployments, nobody is on duty.
      const hasSome = (await records.deployments.deploymentChanges("", 1)).length > 0;
      this.#isOnDuty = hasSome && closed() === null && (await takeDuty(3 * ROUND_MS));
      if (!this.#isOnDuty) for (const deploymentId of [...this.#known.keys()]) this.#forget(deploymentId);
      if (hasSome || this.#streamed.size > 0) await this.#lookAtAll();
      delayMs = hasSome || this.#hasChanged ? ROUND_MS : LOOK_MS;
    } catch (error) {
      log.warn({ error: String(error) }, "deployments cannot be read yet");
    }
    this.#isLooking = false;
    this.#roundIn(delayMs);
  }

  async #lookAtAll(): Promise<void> {
    const { records, clock } = this.#parts;
    const before = this.#streamed;
    this.#streamed = new Map();
    for (let after = "", isLast = false; !isLast; ) {
      const page = await records.deployments.deploymentChanges(after, PAGE);
      for (const { deploymentId, changes, eventSeq } of page) {
        before.delete(deploymentId);
        await this.#stream(deploymentId, eventSeq);
        const known = this.#known.get(deploymentId);
        const isRecent = known !== undefined && clock.steadyMs() - known.lookedAtMs < LOOK_MS;
        if (this.#isOnDuty && (!isRecent || known.changes !== changes)) this.#steps.add(deploymentId);
      }
      isLast = page.length < PAGE;
      after = page.at(-1)?.deploymentId ?? after;
    }
    for (const [deploymentId, eventSeq] of before) this.#publishEnd(deploymentId, eventSeq + 1);
  }

  /** Tells who follows a deployment here of events that another program has written. */
  async #stream(deploymentId: string, eventSeq: number): Promise<void> {
    const { feed, records } = this.#parts;
    if (!feed.isListened(deploymentId)) return;
    this.#streamed.set(deploymentId, eventSeq);
    if (feed.positionOf(deploymentId) === eventSeq) return;
    // Streams read what is before it.
    const { firstSeq, lines } = await records.deployments.deploymentEvents(deploymentId, eventSeq - 1, PAGE);
    if (lines.length > 0) feed.published(deploymentId, firstSeq, lines);
  }

  #publishEnd(deploymentId: string, seq: number): void {
    const { feed, clock } = this.#parts;
    feed.published(deploymentId, seq, [deletedLine(deploymentId, seq, clock.nowMs())], true);
  }

  /** Takes the steps of a deployment, one after the other. */
  async #advance(deploymentId: string, signal: AbortSignal): Promise<void> {
    const { records, closed } = this.#parts;
    while (!signal.aborted && closed() === null) {
      const deployment = await records.deployments.deployment(deploymentId);
      if (deployment === null) return this.#forget(deploymentId);
      const known = this.#known.get(deploymentId) ?? this.#newlyKnown(deploymentId);
      const nowMs = this.nowMs();
      const isOurs = known.changes === deployment.changes;
      const from = isOurs ? deployment : restarted(deployment, nowMs);
      const taken = await this.#take({ deployment, from, nowMs });
      if (taken === "changed") continue;
      if (taken === "gone") return this.#forget(deploymentId);
      // Two programs that both go on would take each other's steps for changes of an owner.
      if (!this.#isOnDuty) return this.#forget(deploymentId);
      known.changes = taken.deployment.changes;
      this.#watch(taken.deployment, known);
      if (!taken.isLast) continue;
      this.#rest(deploymentId, known, taken.step);
      return;
    }
  }

  async #take({
    deployment,
    from,
    nowMs,
  }: {
    readonly deployment: Deployment;
    readonly from: Deployment;
    readonly nowMs: number;
  }) {
    const { records, services } = this.#parts;
    const observed = await observe({ records: records.deployments, services }, deployment);
    const asked = step(from, observed, nowMs);
    const { prepared, refused } = await this.#prepare(asked);
    const taken = refused.size === 0 ? asked : { ...step(from, { ...observed, refused }, nowMs), starts: [] };
    if (taken.next === deployment && prepared.length === 0) {
      if (!deployment.isDeleted || deployment.instances.length > 0)
        return { deployment, step: taken, isLast: true };
      return this.#remove(deployment);
    }
    const written = await this.#write(deployment, taken, refused.size === 0 ? prepared : []);
    return written === null ? "changed" : { deployment: written, step: taken, isLast: false };
  }

  /** Checks what is to be started, and chooses where. */
  async #prepare({ next, starts }: Step): Promise<{
    readonly prepared: readonly PreparedStart<Writes>[];
    readonly refused: Observed["refused"];
  }> {
    const { runs } = this.#parts;
    const checked: (NewInstance & { readonly insert: InsertInstance<Writes> })[] = [];
    const places = new Map<number, readonly Place[]>();
    for (const one of starts) {
      const version = versionOf(next, one.version);
      if (version === undefined) continue;
      try {
        checked.push({ ...one, insert: await runs.prepare(next, version, one) });
        if (!places.has(one.version)) places.set(one.version, await runs.places(version));
      } catch (error) {
        // What is no fault of the version, such as a drain, is waited for.
        if (!(error instanceof DomainError) || error.code === "unavailable") throw error;
        return { prepared: [], refused: new Map([[one.version, error.message]]) };
      }
    }
    return { prepared: placed(checked, next.instances, places), refused: new Map() };
  }

  /** @returns the deployment as it is on disk; null when it had changed */
  async #write(
    before: Deployment,
    { next, stops }: Step,
    prepared: readonly PreparedStart<Writes>[],
  ): Promise<Deployment | null> {
    const { records, runs, clock } = this.#parts;
    const nowMs = this.nowMs();
    const written = await records.write(async (writes) => {
      const now = await writes.deployments.deployment(before.deploymentId);
      if (now === null || now.changes !== before.changes) return null;
      const started: Instance[] = [];
      for (const one of prepared) started.push(newInstance(one, await one.insert(writes, one.place), nowMs));
      for (const runId of stops) await runs.cancel(writes, runId);
      const changed: Deployment = {
        ...next,
        instances: [...next.instances, ...started],
        started: next.started + started.length,
        changes: before.changes + 1,
      };
      const { counted, lines } = withEvents(changed, before, clock.nowMs());
      await writes.deployments.save(counted, before);
      await writes.deployments.addEvents(counted.deploymentId, before.eventSeq + 1, lines);
      return { counted, lines, started };
    });
    if (written === null) return null;
    const { counted, lines, started } = written;
    this.#parts.meter.stepped(before, counted);
    if (lines.length > 0) this.#parts.feed.published(counted.deploymentId, before.eventSeq + 1, lines);
    for (const [i, { runId }] of started.entries()) runs.accepted(runId, prepared[i]?.place ?? null);
    const stopped = before.instances.filter(({ runId }) => stops.includes(runId));
    for (const version of new Set(stopped.map((one) => one.version)))
      runs.cancelled(versionOf(before, version)?.jobId ?? "");
    return counted;
  }

  /** Nothing of a deleted deployment runs any more. */
  async #remove(deployment: Deployment): Promise<"gone" | "changed"> {
    const { records } = this.#parts;
    const { deploymentId, eventSeq, changes } = deployment;
    const isGone = await records.write(async ({ deployments }) => {
      if ((await deployments.deployment(deploymentId))?.changes !== changes) return false;
      await deployments.remove(deploymentId);
      return true;
    });
    if (!isGone) return "changed";
    this.#publishEnd(deploymentId, eventSeq + 1);
    return "gone";
  }

  #newlyKnown(deploymentId: string): Known {
    const known: Known = { changes: 0, lookedAtMs: 0, cancelTimer: () => {}, watched: new Map() };
    this.#known.set(deploymentId, known);
    return known;
  }

  /** Until something happens, or it is time. */
  #rest(deploymentId: string, known: Known, { wakeAtMs }: Step): void {
    const { clock } = this.#parts;
    known.cancelTimer();
    known.lookedAtMs = clock.steadyMs();
    if (wakeAtMs !== null)
      known.cancelTimer = clock.after(wakeAtMs - this.nowMs(), () => this.#steps.add(deploymentId));
  }

  /** Listens to the runs of its instances, so that what happens from now on is not missed. */
  #watch({ deploymentId, instances }: Deployment, { watched }: Known): void {
    const { feed } = this.#parts;
    const jobs = new Set(instances.map(({ runtimeJobId }) => runtimeJobId));
    for (const [jobId, stop] of watched) {
      if (jobs.has(jobId)) continue;
      stop();
      watched.delete(jobId);
    }
    for (const jobId of jobs) {
      if (watched.has(jobId)) continue;
      const stop = feed.subscribe(jobId, ({ lines }, isEnd) => {
        if (isEnd || lines.some((line) => WATCHED.test(eventType(line)))) this.#steps.add(deploymentId);
      });
      watched.set(jobId, stop);
      // What has happened before this is seen by another look.
      this.#steps.add(deploymentId);
    }
  }

  #forget(deploymentId: string): void {
    const known = this.#known.get(deploymentId);
    if (known === undefined) return;
    this.#known.delete(deploymentId);
    known.cancelTimer();
    for (const stop of known.watched.values()) stop();
  }
}

const newInstance = (
  { number, version, place }: PlacedInstance,
  { runId, runtimeJobId }: { readonly runId: string; readonly runtimeJobId: string },
  nowMs: number,
): Instance => ({
  runId,
  runtimeJobId,
  number,
  version,
  phase: "starting",
  health: "unknown",
  healthSinceMs: nowMs,
  node: place?.node ?? null,
  startedAtMs: nowMs,
  waitsSinceMs: nowMs,
  servesSinceMs: null,
  stopAtMs: null,
});
