// A node's membership: the lease under which it works, and what becomes of its work without it.
//
// M1. The lease is counted from the moment before its renewal was sent, on a clock that nobody can set. So it is over here
//     before it is over for others, however late an answer comes, and whatever the clocks of the machines say.
// M2. Once it may be over, or the database says that it is, everything is given up at once; commands may run a little
//     longer, and end before it is over for others.
// M3. The node works again under a new owner only, and once nothing runs any more of what it has given up.
// M4. What no living owner has is looked for all the time, and taken over; but not while the node is drained.
// M5. Whether the node is drained is in its row, and followed from one renewal to the next: so anybody may ask for it, and a
//     lost request is found.

import type { DrainOrder, JobsLeft } from "../engine/drain.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import {
  type NodeEntry,
  type NodeLoad,
  type NodeOrder,
  type NodeRecord,
  type NodeRecords,
  type Outage,
  ownerOf,
  type Renewal,
  type Replaceable,
} from "./nodes.ts";

const LOOK_EVERY_MS = 1_000;
const RETRY_MS = 1_000;
const WAIT_BEYOND_MS = 1_000;
/** While the node is drained, so that others see how far it is. */
const RENEW_DRAINING_MS = 1_000;

/** What a node does under its lease. */
export interface Work {
  /** Begins under a new owner. */
  begin(owner: string): void;
  /** Takes over what no living owner has. @returns how many jobs. @throws JournalUnavailable */
  takeOver(): Promise<number>;
  /** Stops working at once. @param reason for those who wait, or ask for something */
  giveUp(reason: string): void;
  /** Resolves once nothing runs any more of what was given up. */
  ended(): Promise<void>;
  /** Commands may run until then, on the steady clock. */
  mayRunUntil(steadyMs: number): void;
  /** Has all jobs leave; may be called again with another deadline. */
  drain(order: DrainOrder): void;
  /** What is still here stays. */
  undrain(): void;
  /** What is left of a drain; null when there is none. */
  jobsLeft(): Pick<JobsLeft, "services" | "moved"> | null;
}

export interface MembershipParts {
  /** Without its owner, which changes, and its address, which is known once it listens. */
  readonly node: Omit<NodeEntry, "owner" | "address">;
  readonly records: NodeRecords;
  readonly leaseMs: number;
  readonly load: () => Omit<NodeLoad, "servicesOwned" | "jobsMoved">;
  readonly newId: () => string;
  /** There are other nodes: told with each lease, and each renewal. */
  readonly onOthers: () => void;
  /** The program is to end: nothing is left here, or the node gets no lease any more and nothing runs. May be called again. */
  readonly onEnd: (reason: string) => void;
  readonly clock: Clock;
  readonly log: EngineLog;
}

/** The node was removed from the cluster. */
export class NodeRemoved extends Error {
  override readonly name = "NodeRemoved";
}

/** Another program is this node already. */
export class NodeTaken extends Error {
  override readonly name = "NodeTaken";
}

/** How long a lease lets a node do what, in milliseconds from before its renewal was sent. */
function timesOf(leaseMs: number) {
  return {
    renewEveryMs: leaseMs / 5,
    workMs: (leaseMs * 2) / 3,
    // The rest is for what ends them, which may be late itself, and for clocks that run apart.
    commandsMs: (leaseMs * 14) / 15,
  };
}

type State =
  | { readonly kind: "out" }
  /** `untilMs` is on the steady clock. */
  | { readonly kind: "member"; readonly owner: string; readonly untilMs: number }
  | { readonly kind: "left" };

export class Membership {
  readonly #parts: MembershipParts;
  readonly #times: ReturnType<typeof timesOf>;
  #state: State = { kind: "out" };
  /** The last one, while there is no lease: what carries its name then is taken over by others. */
  #owner: string;
  #work: Work | null = null;
  #address: string | null = null;
  #cancelRenewal = () => {};
  #cancelExpiry = () => {};
  #cancelLook = () => {};
  #isFailing = false;
  #isStarted = false;
  /** The look that is under way; null between two. */
  #looking: Promise<void> | null = null;
  /** What was last found to be asked of this node. */
  #outage: Outage | null = null;
  #renewing: Promise<void> = Promise.resolve();

  constructor(parts: MembershipParts) {
    this.#parts = parts;
    this.#times = timesOf(parts.leaseMs);
    this.#owner = this.#newOwner();
  }

  /** The owner of what this node takes on now. */
  get owner(): string {
    return this.#owner;
  }

  /**
   * Registers the node, under the first owner. Waits for the end of a lease that another program may have had.
   *
   * @param address host:port at which other nodes reach it; null: nowhere
   * @param replaced which valid lease of this node is not another program's
   * @throws NodeTaken when another program renews it; NodeRemoved; JournalUnavailable
   */
  async join(work: Work, address: string | null, replaced: Replaceable): Promise<void> {
    const { clock, leaseMs, log, node } = this.#parts;
    this.#address = address;
    const taken = await this.#register(work, this.#owner, replaced);
    if (taken === null) return;
    if (taken === "removed") throw new NodeRemoved(removedText(node));
    log.warn(
      { node_id: node.nodeId },
      "this node has a lease that may be of another program: waiting for its end",
    );
    await new Promise<void>((resolve) => clock.after(leaseMs + WAIT_BEYOND_MS, resolve));
    const stillTaken = await this.#register(work, this.#owner, replaced);
    if (stillTaken === "removed") throw new NodeRemoved(removedText(node));
    if (stillTaken !== null) throw new NodeTaken(takenText(stillTaken));
  }

  /** How long the lease lasts from now on, as far as is known here; 0 without one. */
  get leftMs(): number {
    const state = this.#state;
    if (state.kind !== "member") return 0;
    const { clock, leaseMs } = this.#parts;
    return Math.max(0, state.untilMs - this.#times.workMs + leaseMs - clock.steadyMs());
  }

  /** Takes over what there is, and from now on what there will be. */
  async start(): Promise<void> {
    this.#isStarted = true;
    await this.#look();
  }

  /** Gives everything up if the lease may be over: for who learns of that before this node's own timers run. */
  check(): void {
    const state = this.#state;
    if (state.kind === "member" && this.#isOver(state))
      this.#lose("The lease of this node was not renewed in time");
  }

  /** Why this node takes nothing on; null while it does. */
  get outage(): Outage["kind"] | null {
    return this.#outage?.kind ?? null;
  }

  /** Asks something of this node, which follows at once. @throws JournalUnavailable */
  async order(order: NodeOrder): Promise<NodeRecord | null> {
    const { records, node } = this.#parts;
    const record = await records.order(node.nodeId, order);
    // One that is under way may have been answered before.
    await this.#renewing;
    if (this.#state.kind === "member") await this.#renew();
    return record;
  }

  /**
   * Leaves, and stops renewing.
   *
   * @param isClear whether nothing runs any more, so that others may take over at once what is left; if not, the lease ends
   *   by itself
   */
  async leave(isClear: boolean): Promise<void> {
    const state = this.#state;
    this.#state = { kind: "left" };
    this.#cancelTimers();
    // It writes, and the database is closed after this.
    await this.#looking;
    if (state.kind !== "member" || !isClear) return;
    await this.#endLease(state.owner);
  }

  /** For others who need not wait for its end then. */
  async #endLease(owner: string): Promise<void> {
    const { records, node, log } = this.#parts;
    await records.leave({ ...node, owner }).catch((error: unknown) => {
      log.warn({ reason: String(error) }, "the lease of this node could not be ended: it ends by itself");
    });
  }

  #newOwner(): string {
    return ownerOf(this.#parts.node.nodeId, this.#parts.newId());
  }

  /** @returns who has the lease, or that the node was removed; null when it has the lease now */
  async #register(work: Work, owner: string, replaced: Replaceable): Promise<NodeRecord | "removed" | null> {
    const { records, node, leaseMs, clock } = this.#parts;
    const sentMs = clock.steadyMs();
    const entry = { ...node, owner, address: this.#address };
    const registration = await records.register(entry, leaseMs, replaced);
    if ("removed" in registration) return "removed";
    if ("taken" in registration) return registration.taken;
    if (this.#state.kind === "left") return null;
    this.#work = work;
    this.#owner = owner;
    this.#hold(owner, sentMs);
    this.#follow(work, registration);
    this.#renewLater(sentMs);
    return null;
  }

  /** The lease is valid as of the moment at which this was asked for (M1). */
  #hold(owner: string, sentMs: number): void {
    const { clock } = this.#parts;
    const { workMs, commandsMs } = this.#times;
    const state: State = { kind: "member", owner, untilMs: sentMs + workMs };
    this.#state = state;
    this.#work?.mayRunUntil(sentMs + commandsMs);
    this.#cancelExpiry();
    this.#cancelExpiry = clock.after(Math.max(0, state.untilMs - clock.steadyMs()), () => this.check());
  }

  #isOver({ untilMs }: Extract<State, { kind: "member" }>): boolean {
    return this.#parts.clock.steadyMs() >= untilMs;
  }

  #renewLater(sentMs: number): void {
    const { renewEveryMs } = this.#times;
    this.#renewAt(
      sentMs + (this.#outage === null ? renewEveryMs : Math.min(renewEveryMs, RENEW_DRAINING_MS)),
    );
  }

  #renewAt(dueMs: number): void {
    const { clock } = this.#parts;
    this.#cancelRenewal();
    this.#cancelRenewal = clock.after(Math.max(0, dueMs - clock.steadyMs()), () => void this.#renew());
  }

  #renew(): Promise<void> {
    this.#renewing = this.#renewed();
    return this.#renewing;
  }

  async #renewed(): Promise<void> {
    const { records, node, leaseMs, load, clock } = this.#parts;
    this.check();
    const before = this.#state;
    if (before.kind !== "member") return;
    const { owner } = before;
    const sentMs = clock.steadyMs();
    let renewal: Renewal | null;
    try {
      const { services, moved } = this.#work?.jobsLeft() ?? { services: 0, moved: 0 };
      const said = { ...load(), servicesOwned: services, jobsMoved: moved };
      renewal = await records.renew({ ...node, owner }, leaseMs, said);
    } catch (error) {
      this.#failed(error, "the lease of this node cannot be renewed");
      // What is over by then is found then.
      if (this.#state === before) this.#renewAt(clock.steadyMs() + this.#retryMs);
      return;
    }
    if (this.#state !== before) return;
    if (renewal === null) {
      this.#lose("The database says that the lease of this node is over");
      return;
    }
    this.#isFailing = false;
    this.#hold(owner, sentMs);
    // An answer that came too late (M1).
    this.check();
    if (this.#state.kind !== "member") return;
    this.#follow(this.#work!, renewal);
    this.#renewLater(sentMs);
  }

  /** Does what is asked of this node (M5). */
  #follow(work: Work, { outage, hasOthers }: Renewal): void {
    const { clock, log, node, onOthers } = this.#parts;
    if (hasOthers) onOthers();
    const before = this.#outage;
    this.#outage = outage;
    if (outage === null) {
      if (before === null) return;
      log.warn({ node_id: node.nodeId }, "this node works again");
      work.undrain();
      return;
    }
    if (outage.isLast) this.#parts.onEnd(LEAVES);
    if (before?.requestedAtMs === outage.requestedAtMs && before.kind === outage.kind) return;
    const deadlineMs = clock.steadyMs() + outage.leftMs;
    log.warn(
      { node_id: node.nodeId, deadline_ms: outage.leftMs },
      `this node is ${stateTexts[outage.kind]}: its jobs go to other nodes`,
    );
    work.drain({ deadlineMs, servicesLast: outage.servicesLast, reason: closedText(node, outage) });
  }

  get #retryMs(): number {
    return Math.min(RETRY_MS, this.#times.renewEveryMs);
  }

  #lose(what: string): void {
    const { log, node } = this.#parts;
    const work = this.#work!;
    this.#state = { kind: "out" };
    this.#cancelTimers();
    log.error(
      { node_id: node.nodeId },
      `${what}: it stops working, ends its commands, and gives its jobs up to other nodes until it has a lease again`,
    );
    work.giveUp(`${what}, so other nodes take its jobs over. Try again in a moment, or ask another node.`);
    void this.#joinAgain(work);
  }

  async #joinAgain(work: Work): Promise<void> {
    const { clock, log, node } = this.#parts;
    const owner = this.#newOwner();
    await work.ended();
    while (this.#state.kind === "out") {
      try {
        // A registration whose answer was lost may have been made.
        const taken = await this.#register(work, owner, [this.#owner, owner]);
        if (taken === "removed")
          return await this.#end(REMOVED, "this node was removed from the cluster: its program ends");
        if (taken !== null) log.error({ node_id: node.nodeId }, takenText(taken));
      } catch (error) {
        if (!(error instanceof JournalUnavailable))
          return await this.#end(
            (error as Error).message,
            "this node cannot have a lease any more: its program ends",
          );
        this.#failed(error, "this node cannot register again");
      }
      if (this.#state.kind === "out")
        await new Promise<void>((resolve) => clock.after(this.#retryMs, resolve));
    }
    if (this.#state.kind !== "member") return;
    this.#isFailing = false;
    log.warn({ node_id: node.nodeId, owner }, "this node has a lease again and works on");
    work.begin(owner);
    void this.#look();
  }

  async #end(reason: string, what: string): Promise<void> {
    const { node, log, onEnd } = this.#parts;
    if (this.#state.kind === "left") return;
    this.#state = { kind: "left" };
    log.error({ node_id: node.nodeId, reason }, what);
    await this.#endLease(this.#owner);
    onEnd(reason);
  }

  /** To be called when another owner's lease is over: what it had is taken over now. */
  lookNow(): void {
    this.#cancelLook();
    void this.#look();
  }

  /** One look at a time: one that began under an earlier owner ends first. */
  async #look(): Promise<void> {
    this.check();
    if (this.#state.kind !== "member" || !this.#isStarted || this.#looking !== null) return;
    this.#looking = this.#takeOver();
    await this.#looking;
    this.#looking = null;
    if (this.#state.kind !== "member") return;
    this.#cancelLook = this.#parts.clock.after(LOOK_EVERY_MS, () => void this.#look());
  }

  async #takeOver(): Promise<void> {
    try {
      const jobs = this.#outage === null ? await this.#work!.takeOver() : 0;
      if (jobs > 0) this.#parts.log.warn({ jobs }, "open jobs that no living node had were taken over");
    } catch (error) {
      this.#failed(error, "open jobs of other nodes cannot be looked for");
    }
  }

  /** Says it once, until the lease is renewed again. */
  #failed(error: unknown, what: string): void {
    if (!(error instanceof JournalUnavailable)) throw error;
    if (!this.#isFailing) this.#parts.log.error({ reason: error.message }, what);
    this.#isFailing = true;
  }

  #cancelTimers(): void {
    this.#cancelRenewal();
    this.#cancelExpiry();
    this.#cancelLook();
  }
}

const LEAVES = "This node leaves the cluster, as it was asked to.";
const REMOVED = "This node was removed from the cluster.";

const stateTexts = { draining: "being drained", maintenance: "in maintenance" } as const;

const closedText = ({ name }: Pick<NodeEntry, "name">, { kind }: Outage) =>
  `Node ${name} is ${stateTexts[kind]} and takes no new jobs: ask another node, or wait until it works again.`;

const removedText = ({ nodeId, name }: Pick<NodeEntry, "nodeId" | "name">) =>
  `Node ${name} (${nodeId}) was removed from the cluster, and this home stays removed. To run a node here again, set SVC_HOME ` +
  `to an empty folder, and join with a new token (\`troupe node add ${name}\` on one of the cluster's nodes).`;

const takenText = ({ nodeId, name, address, owner }: NodeRecord) =>
  `Node ${nodeId} runs already, as ${name}${address === null ? "" : ` at ${address}`} (${owner}). A copied home has the ` +
  "id of its original: stop the other program, or remove node.json from this home to make it a node of its own.";
