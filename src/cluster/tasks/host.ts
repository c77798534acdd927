// The attempts that this node runs for the owners of other nodes' jobs, and the slots that it gives them.
//
// - An owner's attempts run while its task lease lasts (task-lease.ts).
// - A node without a lease takes no owners: before it has its first one, it ends whatever runs in its home.
// - A session ends when its lease is over, or when its node comes back under another name: all of its attempts are
//   stopped, its slots are given back when they have ended, and nothing is reported any more.
// - A session goes on over a new connection, with the messages that the other end has missed (link.ts).

import type { DeclaredOutput } from "../../engine/graph.ts";
import {
  type Clock,
  type EngineLog,
  noNeeds,
  parseSlotsKey,
  type Slots,
  slotsKey,
} from "../../engine/ports.ts";
import { plainShare } from "../../engine/share.ts";
import type {
  Lease,
  RunningAttempt,
  TaskEvent,
  TaskListener,
  TaskOutcome,
  TaskRef,
  TaskRunner,
  WorkerActions,
} from "../../engine/task-port.ts";
import { nodeOf } from "../nodes.ts";
import { type Frame, Link, WrongFrame } from "./link.ts";
import {
  type Connection,
  demandIn,
  type FromHost,
  type FromOwner,
  type Hello,
  numberIn,
  type Pong,
  shareIn,
  type ToHost,
  type ToOwner,
  taskIn,
} from "./messages.ts";
import type { OwnSlots } from "./slots.ts";
import { TaskLease } from "./task-lease.ts";

/** Of a command whose owner is not reached, between SIGTERM and SIGKILL. */
const STOP_GRACE_MS = 1_000;
/** Messages that an owner has not confirmed, from which on its attempts are not read on. */
const UNCONFIRMED_MAX = 1_000;

export interface HostParts {
  readonly nodeId: string;
  /** This node's name in the cluster, as an owner. */
  readonly host: () => string;
  readonly leaseMs: number;
  /** How long this node's own lease lasts from now on; 0 when it has none. */
  readonly ownLeaseLeftMs: () => number;
  readonly runner: TaskRunner;
  /** This node's own slots. Keys of owners elsewhere begin with FOREIGN. */
  readonly slots: Pick<Slots, "request" | "release"> & Pick<OwnSlots, "spare" | "snapshot">;
  readonly clock: Clock;
  readonly log: EngineLog;
}

/** How keys of other nodes' attempts begin in this node's slots. */
export const FOREIGN = "@";

interface Attempt extends RunningAttempt {
  readonly session: Session;
  readonly outputs: readonly DeclaredOutput[];
}

interface Session {
  readonly owner: string;
  readonly link: Link<ToOwner, ToHost>;
  connection: Connection<FromHost, FromOwner> | null;
  /** Keys that wait for slots or have them, with the numbers of their requests; and those of them that wait. */
  readonly keys: Map<string, number>;
  readonly waiting: Set<string>;
  readonly lease: TaskLease;
  readonly waiters: (() => void)[];
  isOver: boolean;
}

export class TaskHost implements TaskListener {
  readonly #parts: HostParts;
  readonly #sessions = new Map<string, Session>();
  readonly #attempts = new Map<string, Attempt>();
  /** Of owners whose earlier attempts still end here. */
  #greetings: { readonly greet: () => void; readonly connection: Connection<FromHost, FromOwner> }[] = [];
  /** When attempts are ended that still run, on the steady clock; null while new ones are taken. */
  #drainUntilMs: number | null = null;
  #cancelDrain = () => {};

  constructor(parts: HostParts) {
    this.#parts = parts;
  }

  /** Whether it is an attempt of another node's job. */
  has(ref: TaskRef): boolean {
    return this.#attempts.has(slotsKey(ref));
  }

  /** The attempts that run here, those included that were asked to end. */
  get attempts(): readonly RunningAttempt[] {
    return Array.from(this.#attempts.values(), ({ ref, runId }) => ({ ref, runId }));
  }

  /** The files that the manifest of a job calls its outputs, while an attempt of it runs here. */
  declaredOutputs(jobId: string): readonly DeclaredOutput[] {
    for (const { ref, outputs } of this.#attempts.values()) if (ref.jobId === jobId) return outputs;
    return [];
  }

  /** Takes a connection of a node of this cluster, on which it will say hello. */
  accept(connection: Connection<FromHost, FromOwner>): void {
    const { clock, leaseMs, ownLeaseLeftMs } = this.#parts;
    let session: Session | null = null;
    let isClosed = false;
    const guarded = (run: () => void) => {
      try {
        run();
      } catch (error) {
        this.#cutOff(connection, session, error);
      }
    };
    const greet = (hello: Hello, validUntilMs: number) => {
      if (isClosed) return;
      if (ownLeaseLeftMs() <= 0) {
        connection.close();
        return;
      }
      this.#endOthers(hello);
      // What it was told to have ended must have: its answer waits for that.
      if (this.#isEnding(nodeOf(hello.owner)))
        this.#greetings.push({ greet: () => guarded(() => greet(hello, validUntilMs)), connection });
      else session = this.#welcome(hello, validUntilMs, connection);
    };
    const lasts = ({ validMs }: Hello | Pong) => Math.min(numberIn(validMs, "validMs"), leaseMs);
    const take = (frame: FromOwner) => {
      if ("owner" in frame) greet(frame, clock.steadyMs() + lasts(frame));
      else if (session === null || session.connection !== connection) connection.close();
      else if ("pong" in frame) session.lease.answered(frame.pong, lasts(frame));
      else session.link.frame(frame);
    };
    connection.onFrame = (frame) => guarded(() => take(frame));
    connection.onClose = () => {
      isClosed = true;
      if (session?.connection !== connection) return;
      session.connection = null;
      session.link.disconnected();
      // An owner that needs nothing any more, and has got all, hangs up.
      if (session.keys.size === 0 && session.link.waiting === 0) this.#end(session);
    };
  }

  /** What came is wrong; or it could not be handled and is lost, and the session with it. */
  #cutOff(connection: Connection<FromHost, FromOwner>, session: Session | null, error: unknown): void {
    const { log } = this.#parts;
    connection.close();
    if (error instanceof WrongFrame) {
      log.warn({ reason: error.message }, "another node's task stream was cut off");
      return;
    }
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
    log.error({ reason }, "a message of another node could not be handled: its attempts are ended here");
    if (session !== null) this.#end(session);
  }

  /** Slots were granted to a key that began with FOREIGN. */
  granted(foreignKey: string, lease: Lease): void {
    const { session, key } = this.#ownerOf(foreignKey);
    const number = session?.keys.get(key);
    if (session === undefined || number === undefined) {
      this.#parts.slots.release(foreignKey);
      return;
    }
    session.waiting.delete(key);
    session.link.send({
      kind: "granted",
      key,
      number,
      lease: { ...lease, node: this.#parts.nodeId },
    });
  }

  /** Tells the owners what is free in these pools; those that are not connected are told later. */
  tellFree(pools: Iterable<string>): void {
    const free = this.#freeIn(pools);
    for (const { connection } of this.#sessions.values()) connection?.write({ free });
  }

  #freeIn(pools: Iterable<string>): Readonly<Record<string, number>> {
    const freeOf = (pool: string) => Math.max(0, this.#parts.slots.spare(pool)?.free ?? 0);
    return Object.fromEntries(Array.from(pools, (pool) => [pool, freeOf(pool)]));
  }

  /** Takes no attempts any more: requests are refused, and what runs at the deadline is ended. */
  drain(deadlineMs: number): void {
    const { clock, runner } = this.#parts;
    this.#drainUntilMs = deadlineMs;
    this.#cancelDrain();
    this.#cancelDrain = clock.after(Math.max(0, deadlineMs - clock.steadyMs()), () => {
      for (const { ref } of this.#attempts.values()) runner.stop(ref);
    });
    for (const session of this.#sessions.values())
      for (const key of [...session.waiting]) this.#refuse(session, key);
  }

  undrain(): void {
    this.#drainUntilMs = null;
    this.#cancelDrain();
  }

  #refuse(session: Session, key: string): void {
    const number = session.keys.get(key)!;
    this.#release(session, key);
    session.link.send({ kind: "refused", key, number });
  }

  // ------------------------------------------------------------------------------ reports of the runner

  taskEvents(ref: TaskRef, events: readonly TaskEvent[]): void {
    this.#sessionOf(ref)?.link.send({ kind: "events", ref, events });
  }

  taskActions(ref: TaskRef, actions: WorkerActions): void {
    this.#sessionOf(ref)?.link.send({ kind: "actions", ref, actions });
  }

  taskEnded(ref: TaskRef, outcome: TaskOutcome): void {
    const key = slotsKey(ref);
    const attempt = this.#attempts.get(key);
    if (attempt === undefined) return;
    this.#attempts.delete(key);
    const { session } = attempt;
    if (!session.isOver) session.link.send({ kind: "ended", ref, outcome });
    this.#release(session, key);
    if (session.isOver) for (const { greet } of this.#greetings.splice(0)) greet();
  }

  backpressure(ref: TaskRef): Promise<void> | null {
    const session = this.#sessionOf(ref);
    if (session === null || session.link.waiting < UNCONFIRMED_MAX) return null;
    return new Promise((resolve) => session.waiters.push(resolve));
  }

  /** Ends all sessions: this node has lost its own lease, or stops. */
  endAll(): void {
    for (const session of [...this.#sessions.values()]) this.#end(session);
    for (const { connection } of this.#greetings.splice(0)) connection.close();
  }

  // ------------------------------------------------------------------------------------------- sessions

  /** Ends the node's sessions but the one that it goes on with: those of an earlier start, and one that it has given up. */
  #endOthers({ owner, received }: Hello): void {
    const nodeId = nodeOf(owner);
    for (const session of [...this.#sessions.values()]) {
      if (nodeOf(session.owner) !== nodeId) continue;
      if (session.owner !== owner || (received === null && session.link.received > 0)) this.#end(session);
    }
  }

  #isEnding(nodeId: string | null): boolean {
    for (const { session } of this.#attempts.values()) {
      if (session.isOver && nodeOf(session.owner) === nodeId) return true;
    }
    return false;
  }

  #welcome(
    { owner, received }: Hello,
    validUntilMs: number,
    connection: Connection<FromHost, FromOwner>,
  ): Session | null {
    const known = this.#sessions.get(owner);
    if (received !== null && known === undefined) {
      connection.write({ host: this.#parts.host(), received: null });
      return null;
    }
    const session = known ?? this.#begin(owner, validUntilMs);
    // What the connection before may still deliver is not taken: the count is final once it is told.
    session.connection?.close();
    session.connection = connection;
    connection.write({ host: this.#parts.host(), received: session.link.received });
    session.link.connected((frame: Frame<ToOwner>) => connection.write(frame), received ?? 0);
    connection.write({ free: this.#freeIn(Object.keys(this.#parts.slots.snapshot())) });
    this.#ping(session);
    return session;
  }

  #begin(owner: string, validUntilMs: number): Session {
    const { clock, leaseMs, log } = this.#parts;
    const session: Session = {
      owner,
      link: new Link<ToOwner, ToHost>({
        receive: (message) => this.#receive(session, message),
        confirmed: () => {
          if (session.link.waiting >= UNCONFIRMED_MAX) return;
          for (const resolve of session.waiters.splice(0)) resolve();
        },
      }),
      connection: null,
      keys: new Map(),
      waiting: new Set(),
      lease: new TaskLease(validUntilMs, {
        leaseMs,
        clock,
        onBeat: () => {
          session.link.confirmReceived();
          this.#ping(session);
        },
        onOver: () => {
          log.warn({ owner }, "an owner is not reached: its attempts are ended here");
          this.#end(session);
        },
      }),
      waiters: [],
      isOver: false,
    };
    this.#sessions.set(owner, session);
    return session;
  }

  #ping(session: Session): void {
    session.connection?.write({ ping: session.lease.ping() });
  }

  #end(session: Session): void {
    if (session.isOver) return;
    session.isOver = true;
    session.lease.end();
    this.#sessions.delete(session.owner);
    session.connection?.close();
    for (const resolve of session.waiters.splice(0)) resolve();
    const running = new Set<string>();
    for (const [key, attempt] of this.#attempts) {
      if (attempt.session !== session) continue;
      running.add(key);
      this.#parts.runner.stop(attempt.ref, STOP_GRACE_MS);
    }
    for (const key of [...session.keys.keys()]) if (!running.has(key)) this.#release(session, key);
  }

  #receive(session: Session, message: ToHost): void {
    if (session.isOver) return;
    const { runner, slots } = this.#parts;
    switch (message.kind) {
      case "request": {
        const { key, number, pool, share } = message;
        const demand = message.demand === undefined ? null : demandIn(message.demand);
        session.keys.set(key, number);
        if (this.#drainUntilMs !== null || (demand === null && message.demand !== undefined)) {
          this.#refuse(session, key);
          return;
        }
        const grant = slots.request(
          foreignKey(session, key),
          pool,
          message.slots,
          "here",
          { ...noNeeds, demand },
          (share === undefined ? null : shareIn(share)) ?? plainShare(parseSlotsKey(key).jobId),
        );
        if (grant.kind === "queued") session.waiting.add(key);
        else if (grant.kind === "granted") this.granted(foreignKey(session, key), grant.lease);
        else if (grant.kind === "unsatisfiable") {
          session.keys.delete(key);
          session.link.send({ kind: "refused", key, number });
        }
        return;
      }
      case "release":
        // Slots of an attempt that runs are given back by its end.
        if (!this.#attempts.has(message.key)) this.#release(session, message.key);
        return;
      case "start": {
        const { outputs } = message;
        const task = taskIn(message.task);
        this.#attempts.set(slotsKey(task.ref), { ref: task.ref, runId: task.runId, session, outputs });
        runner.start(task);
        // Its slots were granted before.
        if (this.#isOverdue) runner.stop(task.ref);
        return;
      }
      case "stop":
        if (this.#isOf(session, message.ref)) runner.stop(message.ref);
        return;
      case "send":
        if (this.#isOf(session, message.ref)) runner.send(message.ref, message.envelope);
        return;
      case "respond":
        if (this.#isOf(session, message.ref)) runner.respond(message.ref, message.line);
        return;
      default:
        message satisfies never;
    }
  }

  get #isOverdue(): boolean {
    return this.#drainUntilMs !== null && this.#parts.clock.steadyMs() >= this.#drainUntilMs;
  }

  #isOf(session: Session, ref: TaskRef): boolean {
    return this.#attempts.get(slotsKey(ref))?.session === session;
  }

  #release(session: Session, key: string): void {
    session.waiting.delete(key);
    if (session.keys.delete(key)) this.#parts.slots.release(foreignKey(session, key));
  }

  #sessionOf(ref: TaskRef): Session | null {
    const session = this.#attempts.get(slotsKey(ref))?.session;
    return session === undefined || session.isOver ? null : session;
  }

  #ownerOf(foreign: string): { readonly session: Session | undefined; readonly key: string } {
    const [owner = "", key = ""] = foreign.slice(FOREIGN.length).split(" ");
    return { session: this.#sessions.get(owner), key };
  }
}

/** An owner's name has no space. */
const foreignKey = ({ owner }: Session, key: string) => `${FOREIGN}${owner} ${key}`;
