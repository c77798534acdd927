// What changes in lists on all nodes: this one's notes, and those that the others stream here while somebody listens.
//
// - A note may be lost only with its stream. When one begins late, or again, and while a living node cannot be asked, the
//   listener is told that anything may have changed.
// - Who listens is `ready` once every node streams; a node that does not answer is waited for READY_MS at most.

import type { Clock } from "../engine/ports.ts";
import {
  everything,
  type Note,
  type NoteListener,
  NoteQueue,
  type NoteSource,
  type Topic,
} from "../runs/change-notes.ts";
import { isLiving, type NodeReads, type NodeRecord } from "./nodes.ts";
import type { Peers } from "./wire/peers.ts";

const LOOK_EVERY_MS = 1_000;
const READY_MS = 1_000;
/** How often who listens is told to look while a node cannot be asked. */
const BLIND_MS = 5_000;
/** Between two messages of one node. */
const GATHER_MS = 100;
const NOTES_PER_MESSAGE = 1_000;

export interface ClusterNotesParts {
  readonly own: NoteSource;
  readonly nodes: Pick<NodeReads, "present">;
  /** This node's owner, as it is now. */
  readonly owner: () => string;
  readonly peers: Pick<Peers, "stream">;
  readonly clock: Pick<Clock, "after" | "steadyMs">;
}

export class ClusterNotes implements NoteSource {
  readonly #parts: ClusterNotesParts;

  constructor(parts: ClusterNotesParts) {
    this.#parts = parts;
  }

  listen(listener: NoteListener): ReturnType<NoteSource["listen"]> {
    return new Listening(this.#parts, listener);
  }
}

/** The stream of one node. */
interface Stream {
  readonly over: AbortController;
  hasBegun: boolean;
}

class Listening {
  readonly ready: Promise<void>;
  readonly #parts: ClusterNotesParts;
  readonly #listener: NoteListener;
  readonly #own: ReturnType<NoteSource["listen"]>;
  /** By owner. */
  readonly #streams = new Map<string, Stream>();
  #setReady = () => {};
  #isReady = false;
  #isStopped = false;
  #toldAtMs: number;
  readonly #cancels = new Set<() => void>();

  constructor(parts: ClusterNotesParts, listener: NoteListener) {
    this.#parts = parts;
    this.#listener = listener;
    this.#toldAtMs = parts.clock.steadyMs();
    this.#own = parts.own.listen(listener);
    this.ready = new Promise((resolve) => {
      this.#setReady = () => {
        this.#isReady = true;
        resolve();
      };
    });
    this.#after(READY_MS, () => this.#setReady());
    void this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#own.stop();
    for (const cancel of this.#cancels) cancel();
    for (const { over } of this.#streams.values()) over.abort();
    this.#setReady();
  }

  #after(delayMs: number, run: () => void): void {
    const cancel = this.#parts.clock.after(delayMs, () => {
      this.#cancels.delete(cancel);
      run();
    });
    this.#cancels.add(cancel);
  }

  async #look(): Promise<void> {
    const { nodes, owner } = this.#parts;
    // What cannot be read now is read again: streams that there are go on.
    const present = await nodes.present().catch(() => null);
    if (this.#isStopped) return;
    if (present !== null) {
      const own = owner();
      const others = new Map(present.filter(isLiving).map((node) => [node.owner, node]));
      others.delete(own);
      for (const [other, { over }] of this.#streams) if (!others.has(other)) over.abort();
      for (const [other, node] of others) if (!this.#streams.has(other)) void this.#follow(node);
      this.#tellIfBlind(others);
    }
    this.#after(LOOK_EVERY_MS, () => void this.#look());
  }

  #tellIfBlind(others: ReadonlyMap<string, NodeRecord>): void {
    const nowMs = this.#parts.clock.steadyMs();
    const isBlind = [...others.keys()].some((other) => this.#streams.get(other)?.hasBegun !== true);
    if (!isBlind) {
      this.#setReady();
      this.#toldAtMs = nowMs;
    } else if (nowMs - this.#toldAtMs >= BLIND_MS) {
      this.#toldAtMs = nowMs;
      this.#listener(everything);
    }
  }

  async #follow({ owner, address }: NodeRecord): Promise<void> {
    if (address === null) return;
    const stream = { over: new AbortController(), hasBegun: false };
    this.#streams.set(owner, stream);
    try {
      const { signal } = stream.over;
      const messages = this.#parts.peers.stream(address, signal, (client, options) =>
        client.notes({}, options),
      );
      for await (const { notes } of messages) {
        if (!stream.hasBegun) this.#begun(stream);
        for (const { topic, id, jobId, status } of notes)
          this.#listener({ topic: topic as Topic | "", id, jobId, status });
      }
    } catch {
      // The node is gone, or does not answer: the next look opens the stream again.
    }
    if (this.#streams.get(owner) === stream) this.#streams.delete(owner);
  }

  #begun(stream: Stream): void {
    stream.hasBegun = true;
    // What it has noted before was lost.
    if (this.#isReady) this.#listener(everything);
    else if (this.#streams.values().every(({ hasBegun }) => hasBegun)) this.#setReady();
  }
}

/**
 * Notes for another node, gathered for a while; the first ones are none, and say that from now on nothing is missed. It ends
 * with the signal.
 */
export async function* gathered(
  source: NoteSource,
  signal: AbortSignal,
  clock: Pick<Clock, "after">,
): AsyncGenerator<readonly Note[]> {
  const queue = new NoteQueue();
  let isIdle = false;
  let resume = () => {};
  const { stop } = source.listen((note) => {
    queue.add(note);
    if (isIdle) resume();
  });
  signal.addEventListener("abort", () => resume(), { once: true });
  try {
    yield [];
    while (!signal.aborted) {
      isIdle = queue.size === 0;
      if (!isIdle) yield queue.take(NOTES_PER_MESSAGE);
      let cancel = () => {};
      await new Promise<void>((resolve) => {
        resume = resolve;
        if (!isIdle) cancel = clock.after(GATHER_MS, resolve);
        if (signal.aborted) resolve();
      });
      cancel();
    }
  } finally {
    stop();
  }
}
