// The nodes that run attempts of this node's jobs: a session with each, as the owner (messages.ts).
//
// - What is asked of a node is done there once, or the session is lost: then nothing of it runs any more, each of its
//   attempts is reported as interrupted, once, and its requests for slots are given back to be placed elsewhere.
// - A session is lost when the node's own lease is over by the database, when the node does not know it any more, or when
//   the node was not answered for so long that it has ended the attempts by itself (host.ts).
// - While the engine has no room for more reports, none is taken from the node whose report filled it: what is not taken
//   is not confirmed, and so the node does not read on. Its pings are answered meanwhile.

import type { DeclaredOutput } from "../../engine/graph.ts";
import type { Envelope } from "../../engine/message.ts";
import { type Clock, type EngineLog, slotsKey } from "../../engine/ports.ts";
import type { Demand } from "../../engine/resources.ts";
import type { Share } from "../../engine/share.ts";
import type { Lease, TaskListener, TaskRef, TaskStart } from "../../engine/task-port.ts";
import { type Frame, Link, WrongFrame } from "./link.ts";
import {
  type Connection,
  type FromHost,
  type FromOwner,
  numberIn,
  type ToHost,
  type ToOwner,
} from "./messages.ts";

const BEATS_PER_LEASE = 5;
/** A session without work is closed after so many leases. */
const IDLE_LEASES = 4;

export interface PeersParts {
  /** This node's name in the cluster, as an owner. */
  readonly owner: () => string;
  readonly leaseMs: number;
  /** How long this node's own lease lasts from now on. */
  readonly ownLeaseLeftMs: () => number;
  /** Opens a connection to a node. One that cannot be made is closed soon. */
  readonly connect: (nodeId: string) => Connection<FromOwner, FromHost>;
  readonly declaredOutputs: (jobId: string) => readonly DeclaredOutput[];
  readonly listener: () => TaskListener;
  readonly clock: Clock;
  readonly log: EngineLog;
}

/** What the slots of the cluster are told. */
export interface PeerSlots {
  granted(key: string, lease: Lease): void;
  refused(nodeId: string, key: string): void;
  free(nodeId: string, pools: Readonly<Record<string, number>>): void;
  /** The session is lost: these keys wait for nothing any more. */
  lost(nodeId: string, keys: readonly string[]): void;
}

export interface AskedSlots {
  readonly pool: string;
  readonly slots: number;
  readonly demand: Demand | null;
  readonly share: Share;
}

interface Session {
  readonly nodeId: string;
  readonly link: Link<ToHost, ToOwner>;
  /** The host's name, once it has answered. */
  host: string | null;
  connection: Connection<FromOwner, FromHost> | null;
  /** What came over the connection and is not taken yet, in order. */
  arrived: Frame<ToOwner>[];
  /** The engine has no room for more reports. */
  isFull: boolean;
  /** Keys that wait for slots there, with the numbers of their requests. */
  readonly waiting: Map<string, number>;
  requests: number;
  /** Keys that have slots there for an attempt that has not started yet. */
  readonly granted: Set<string>;
  readonly attempts: Map<string, TaskRef>;
  answeredMs: number;
  usedMs: number;
  isOver: boolean;
  cancelBeat: () => void;
}

export class TaskPeers {
  readonly #parts: PeersParts;
  readonly #slots: PeerSlots;
  readonly #sessions = new Map<string, Session>();
  /** The session of each attempt that runs elsewhere. */
  readonly #attempts = new Map<string, Session>();
  /** What waits for the end of all attempts. */
  #stopped: (haveEnded: boolean) => void = () => {};

  constructor(parts: PeersParts, slots: PeerSlots) {
    this.#parts = parts;
    this.#slots = slots;
  }

  /** Makes sure that the node tells what is free there. */
  know(nodeId: string): void {
    this.#sessionWith(nodeId);
  }

  request(nodeId: string, key: string, { pool, slots, demand, share }: AskedSlots): void {
    const session = this.#sessionWith(nodeId);
    const number = ++session.requests;
    session.waiting.set(key, number);
    const asked = { kind: "request", key, number, pool, slots, share } as const;
    this.#send(session, demand === null ? asked : { ...asked, demand });
  }

  /** Takes a request back, or gives slots back. */
  release(nodeId: string, key: string): void {
    const session = this.#sessions.get(nodeId);
    if (session === undefined) return;
    session.waiting.delete(key);
    session.granted.delete(key);
    this.#send(session, { kind: "release", key });
  }

  /** Starts an attempt on the node that has granted its slots. */
  start(nodeId: string, task: TaskStart): void {
    const session = this.#sessions.get(nodeId);
    const key = slotsKey(task.ref);
    if (session === undefined || !session.granted.delete(key)) {
      // The session in which they were granted is lost.
      this.#parts.clock.soon(() => this.#parts.listener().taskEnded(task.ref, lostOutcome(nodeId)));
      return;
    }
    session.attempts.set(key, task.ref);
    this.#attempts.set(key, session);
    const outputs = this.#parts.declaredOutputs(task.ref.jobId);
    this.#send(session, { kind: "start", task, outputs });
  }

  /** Whether the attempt runs on another node. */
  has(ref: TaskRef): boolean {
    return this.#attempts.has(slotsKey(ref));
  }

  stop(ref: TaskRef): void {
    this.#sendFor(ref, { kind: "stop", ref });
  }

  send(ref: TaskRef, envelope: Envelope): void {
    this.#sendFor(ref, { kind: "send", ref, envelope });
  }

  respond(ref: TaskRef, line: string): void {
    this.#sendFor(ref, { kind: "respond", ref, line });
  }

  /** Stops all attempts that run elsewhere. @returns whether they have ended, within `limitMs` */
  async stopAll(limitMs: number): Promise<boolean> {
    for (const session of this.#sessions.values()) {
      for (const ref of session.attempts.values()) this.#send(session, { kind: "stop", ref });
    }
    if (this.#attempts.size === 0) return true;
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.after(limitMs, () => resolve(false));
      this.#stopped = (haveEnded) => {
        cancel();
        resolve(haveEnded);
      };
    });
  }

  /** The database says that this start of a node is over: all that it ran has ended. */
  ended(host: string): void {
    for (const session of [...this.#sessions.values()]) if (session.host === host) this.#lose(session);
  }

  /** This node has lost its own lease: its jobs are forgotten, and nobody waits for reports. */
  close(): void {
    // They may run until their hosts have missed this node for long enough.
    this.#stopped(false);
    for (const session of [...this.#sessions.values()]) this.#drop(session);
  }

  #sendFor(ref: TaskRef, message: ToHost): void {
    const session = this.#attempts.get(slotsKey(ref));
    if (session !== undefined) this.#send(session, message);
  }

  #send(session: Session, message: ToHost): void {
    session.usedMs = this.#parts.clock.steadyMs();
    session.link.send(message);
  }

  #sessionWith(nodeId: string): Session {
    const known = this.#sessions.get(nodeId);
    if (known !== undefined) return known;
    const nowMs = this.#parts.clock.steadyMs();
    const session: Session = {
      nodeId,
      link: new Link<ToHost, ToOwner>({ receive: (message) => this.#receive(session, message) }),
      host: null,
      connection: null,
      arrived: [],
      isFull: false,
      waiting: new Map(),
      requests: 0,
      granted: new Set(),
      attempts: new Map(),
      answeredMs: nowMs,
      usedMs: nowMs,
      isOver: false,
      cancelBeat: () => {},
    };
    this.#sessions.set(nodeId, session);
    this.#connect(session);
    this.#beatLater(session);
    return session;
  }

  #connect(session: Session): void {
    const connection = this.#parts.connect(session.nodeId);
    session.connection = connection;
    const isCurrent = () => session.connection === connection && !session.isOver;
    connection.onFrame = (frame) => {
      if (isCurrent()) this.#guarded(session, () => this.#take(session, frame));
    };
    connection.onClose = () => {
      if (isCurrent()) this.#disconnect(session);
    };
    connection.write({
      owner: this.#parts.owner(),
      received: session.host === null ? null : session.link.received,
      validMs: this.#validMs,
    });
  }

  #take(session: Session, frame: FromHost): void {
    if ("host" in frame) this.#welcomed(session, frame.host, frame.received);
    else if ("ping" in frame) this.#answer(session, frame.ping);
    else if ("free" in frame) {
      for (const free of Object.values(frame.free)) numberIn(free, "free");
      this.#slots.free(session.nodeId, frame.free);
    } else {
      session.arrived.push(frame);
      this.#takeArrived(session);
    }
  }

  #takeArrived(session: Session): void {
    while (!session.isFull) {
      const frame = session.arrived.shift();
      if (frame === undefined) return;
      session.link.frame(frame);
    }
  }

  #waitForRoom(session: Session, ref: TaskRef): void {
    const room = this.#parts.listener().backpressure(ref);
    if (room === null) return;
    session.isFull = true;
    void room.then(() => {
      session.isFull = false;
      this.#guarded(session, () => this.#takeArrived(session));
    });
  }

  #guarded(session: Session, take: () => void): void {
    const { log } = this.#parts;
    const node = session.nodeId;
    try {
      take();
    } catch (error) {
      if (error instanceof WrongFrame) {
        log.warn({ node, reason: error.message }, "a task stream was cut off");
        this.#disconnect(session);
        return;
      }
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      log.error({ node, reason }, "a node's message could not be handled: its attempts are given up");
      this.#lose(session);
    }
  }

  #welcomed(session: Session, host: string, received: number | null): void {
    if (received === null) {
      this.#lose(session);
      return;
    }
    session.host = host;
    const { connection } = session;
    session.link.connected((frame: Frame<ToHost>) => connection?.write(frame), received);
  }

  #answer(session: Session, ping: number): void {
    const validMs = this.#validMs;
    if (validMs <= 0) return;
    session.answeredMs = this.#parts.clock.steadyMs();
    session.connection?.write({ pong: ping, validMs });
  }

  /** How long a host may run attempts from now on. */
  get #validMs(): number {
    const { leaseMs, ownLeaseLeftMs } = this.#parts;
    return Math.min(leaseMs, ownLeaseLeftMs());
  }

  #disconnect(session: Session): void {
    const { connection } = session;
    session.connection = null;
    session.arrived = [];
    session.link.disconnected();
    connection?.close();
  }

  #beatLater(session: Session): void {
    const { clock, leaseMs } = this.#parts;
    session.cancelBeat = clock.after(leaseMs / BEATS_PER_LEASE, () => {
      const nowMs = clock.steadyMs();
      // The host ends attempts within a lease after the last answer, or, if its program stands still, within its own.
      if (nowMs - session.answeredMs >= 2 * leaseMs) return this.#lose(session);
      const isIdle = session.waiting.size + session.granted.size + session.attempts.size === 0;
      if (isIdle && nowMs - session.usedMs >= IDLE_LEASES * leaseMs) return this.#drop(session);
      if (session.connection === null) this.#connect(session);
      else session.link.confirmReceived();
      this.#beatLater(session);
    });
  }

  #lose(session: Session): void {
    if (session.isOver) return;
    const keys = [...session.waiting.keys()];
    const refs = [...session.attempts.values()];
    const { nodeId } = session;
    this.#drop(session);
    if (keys.length + refs.length > 0) {
      this.#parts.log.warn({ node: nodeId, attempts: refs.length }, "a node that ran attempts is lost");
    }
    for (const ref of refs) this.#parts.listener().taskEnded(ref, lostOutcome(nodeId));
    this.#slots.lost(nodeId, keys);
  }

  #drop(session: Session): void {
    session.isOver = true;
    session.cancelBeat();
    this.#sessions.delete(session.nodeId);
    for (const key of session.attempts.keys()) this.#attemptEnded(key);
    this.#disconnect(session);
  }

  #attemptEnded(key: string): void {
    this.#attempts.delete(key);
    if (this.#attempts.size === 0) this.#stopped(true);
  }

  #receive(session: Session, message: ToOwner): void {
    if (session.isOver) return;
    const { nodeId } = session;
    switch (message.kind) {
      case "granted":
        // A request that was taken back meanwhile is given back by the release that is under way.
        if (!isAwaited(session, message)) return;
        session.granted.add(message.key);
        this.#slots.granted(message.key, message.lease);
        return;
      case "refused":
        if (isAwaited(session, message)) this.#slots.refused(nodeId, message.key);
        return;
      case "events":
        this.#parts.listener().taskEvents(message.ref, message.events);
        this.#waitForRoom(session, message.ref);
        return;
      case "actions":
        this.#parts.listener().taskActions(message.ref, message.actions);
        return;
      case "ended": {
        const key = slotsKey(message.ref);
        if (!session.attempts.delete(key)) return;
        this.#attemptEnded(key);
        this.#parts.listener().taskEnded(message.ref, message.outcome);
        return;
      }
      default:
        message satisfies never;
    }
  }
}

/** Notes that the request is answered. @returns false when it was taken back meanwhile */
function isAwaited({ waiting }: Session, { key, number }: { readonly key: string; readonly number: number }) {
  return waiting.get(key) === number && waiting.delete(key);
}

function lostOutcome(nodeId: string) {
  return { kind: "interrupted", reason: `the node ${nodeId} that ran the attempt was lost` } as const;
}
