// Those who listen here to jobs of other nodes get every event once, in order, and the end once; whatever becomes of the
// streams.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { fc } from "../../test/support/fast-check.ts";
import { EventFeed } from "../runs/feed.ts";
import { Follower, type FollowerParts, type Head } from "./follower.ts";
import { type WatchResponse, WatchResponseSchema } from "./wire/gen/svc/node/v1/node_pb.ts";

const JOB = "job_1";
const line = (seq: number) => `event ${seq}`;

/** A stream that the test fills, and breaks. */
class PlayedStream {
  readonly owner: string;
  readonly signal: AbortSignal;
  #waiting: WatchResponse[] = [create(WatchResponseSchema)];
  #failure: Error | null = null;
  #wake = () => {};

  constructor(owner: string, signal: AbortSignal) {
    this.owner = owner;
    this.signal = signal;
    signal.addEventListener("abort", () => this.fail(signal.reason as Error));
  }

  get isOpen(): boolean {
    return this.#failure === null;
  }

  send(firstSeq: number, lines: readonly string[], isEnd = false): void {
    const throughSeq = BigInt(firstSeq + lines.length - 1);
    this.#waiting.push(create(WatchResponseSchema, { throughSeq, lines: [...lines], isEnd }));
    this.#wake();
  }

  fail(error: Error): void {
    this.#failure ??= error;
    this.#wake();
  }

  async *messages(): AsyncGenerator<WatchResponse> {
    try {
      for (;;) {
        const next = this.#waiting.shift();
        if (next !== undefined) yield next;
        else if (this.#failure !== null) throw this.#failure;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.#failure ??= new Error("nobody reads it any more");
    }
  }
}

/** One job elsewhere, its history in the database, and the follower of this node. */
function world() {
  const feed = new EventFeed();
  const state = { history: [] as string[], isEnd: false, owner: "node_b/1" as string | null, isHere: false };
  const streams: PlayedStream[] = [];
  const looks: (readonly string[])[] = [];
  let timer: { readonly delayMs: number; readonly run: () => void } | null = null;
  let failure: Error | null = null;
  let meanwhile: () => void = () => {};
  const parts: FollowerParts = {
    feed,
    engine: { holds: () => state.isHere },
    records: {
      async heads(ids) {
        looks.push(ids);
        if (failure !== null) throw failure;
        const source = state.owner === null ? null : { owner: state.owner, address: `at ${state.owner}` };
        const head: Head = { seq: state.history.length, isEnd: state.isEnd, source };
        return new Map(state.history.length > 0 && ids.includes(JOB) ? [[JOB, head]] : []);
      },
      async events(_id, afterSeq) {
        meanwhile();
        meanwhile = () => {};
        return { firstSeq: afterSeq + 1, lines: state.history.slice(afterSeq, afterSeq + 2) };
      },
    },
    peers: {
      stream<Message>(address: string, signal: AbortSignal) {
        const stream = new PlayedStream(address.slice(3), signal);
        streams.push(stream);
        return stream.messages() as unknown as AsyncGenerator<Message>;
      },
    },
    clock: {
      after(delayMs, run) {
        const mine = { delayMs, run };
        timer = mine;
        return () => {
          if (timer === mine) timer = null;
        };
      },
    },
    log: { warn: () => {}, error: () => {} },
  };
  const follower = new Follower(parts);
  feed.followWith(follower);
  const settled = async () => {
    for (let turns = 0; turns < 12; turns++) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    feed,
    state,
    streams,
    looks,
    follower,
    settled,
    delayMs: () => timer?.delayMs ?? null,
    failWith(error: Error | null) {
      failure = error;
    },
    /** Happens between the next look and the reading behind it. */
    beforeRead(happens: () => void) {
      meanwhile = happens;
    },
    open: () => streams.filter(({ isOpen }) => isOpen),
    commit(count: number, isEnd = false): readonly [firstSeq: number, lines: readonly string[]] {
      const firstSeq = state.history.length + 1;
      const lines = Array.from({ length: count }, (_, i) => line(firstSeq + i));
      state.history.push(...lines);
      state.isEnd = isEnd;
      return [firstSeq, lines];
    },
    /** Lets the time for the next look come. */
    async tick() {
      const due = timer;
      timer = null;
      due?.run();
      await settled();
    },
    listen() {
      const got: string[] = [];
      let ends = 0;
      const stop = feed.subscribe(JOB, ({ lines }, isEnd) => {
        got.push(...lines);
        if (isEnd) ends++;
      });
      return { got, ends: () => ends, stop };
    },
  };
}

const from = (seq: number, through: number) =>
  Array.from({ length: through - seq + 1 }, (_, i) => line(seq + i));

describe("a job of another node", () => {
  test("is told from its last event on, so that who has read the history knows how far it goes", async () => {
    const { commit, listen, tick, delayMs } = world();
    commit(5);
    const { got } = listen();
    assert.equal(delayMs(), 50);
    await tick();
    assert.deepEqual(got, from(5, 5));
    commit(4);
    await tick();
    assert.deepEqual(got, from(5, 9));
  });

  test("comes live from its owner's stream, without a look at the database", async () => {
    const { commit, listen, tick, streams, looks, delayMs } = world();
    commit(1);
    const { got } = listen();
    await tick();
    await tick();
    assert.equal(streams.length, 1);
    const before = looks.length;
    streams[0]!.send(...commit(2));
    streams[0]!.send(...commit(1));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(got, from(1, 4));
    assert.equal(looks.length, before);
    assert.equal(delayMs(), 1_000);
  });

  test("is read at once when its stream leaves something out", async () => {
    const { commit, listen, tick, streams, delayMs } = world();
    commit(1);
    const { got } = listen();
    await tick();
    await tick();
    commit(3);
    streams[0]!.send(...commit(1));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(delayMs(), 0);
    await tick();
    assert.deepEqual(got, from(1, 5));
  });

  test("is streamed by its new owner when it was taken over", async () => {
    const { commit, listen, tick, streams, state, open } = world();
    commit(1);
    const { got } = listen();
    await tick();
    state.owner = null;
    await tick();
    assert.deepEqual(open(), []);
    state.owner = "node_c/1";
    commit(2);
    await tick();
    assert.deepEqual(
      open().map(({ owner }) => owner),
      ["node_c/1"],
    );
    streams[1]!.send(...commit(1, true));
    await tick();
    assert.deepEqual(got, from(1, 4));
  });

  test("that nobody listens to any more costs nothing", async () => {
    const { commit, listen, tick, open, delayMs, settled } = world();
    commit(1);
    const first = listen();
    const second = listen();
    await tick();
    first.stop();
    assert.equal(open().length, 1);
    second.stop();
    await settled();
    assert.deepEqual(open(), []);
    assert.equal(delayMs(), null);
  });

  test("that comes here is not read and not streamed: the engine publishes it", async () => {
    const { commit, listen, tick, state, open, looks, feed } = world();
    commit(2);
    const { got, ends } = listen();
    await tick();
    state.isHere = true;
    await tick();
    assert.deepEqual(open(), []);
    const before = looks.length;
    feed.published(JOB, ...commit(1, true), true);
    await tick();
    assert.equal(looks.length, before);
    state.isHere = false;
    await tick();
    assert.deepEqual(got, from(2, 3));
    assert.equal(ends(), 1);
  });

  test("that has ended before anybody listened is told to have ended, once", async () => {
    const { commit, listen, tick, looks } = world();
    commit(3, true);
    const { got, ends } = listen();
    await tick();
    await tick();
    assert.equal(looks.length, 1);
    assert.deepEqual(got, from(3, 3));
    assert.equal(ends(), 1);
  });

  test("that ends while it is read is told to have ended, with its last event", async () => {
    const { commit, listen, tick, beforeRead } = world();
    commit(1);
    const { got, ends } = listen();
    await tick();
    commit(1);
    beforeRead(() => commit(1, true));
    await tick();
    await tick();
    assert.deepEqual(got, from(1, 3));
    assert.equal(ends(), 1);
  });

  test("is told later when the database cannot be read, and the log reports it once", async () => {
    const { commit, listen, tick, failWith, delayMs } = world();
    commit(1);
    const { got } = listen();
    failWith(new Error("no connection"));
    await tick();
    assert.equal(delayMs(), 1_000);
    await tick();
    failWith(null);
    await tick();
    assert.deepEqual(got, from(1, 1));
  });
});

type Step =
  | { readonly kind: "commit"; readonly count: number; readonly fate: "streamed" | "twice" | "lost" | "hint" }
  | { readonly kind: "tick" | "breaks" | "here" | "away" | "moves" | "listens" | "fails" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("commit" as const),
    count: fc.integer({ min: 1, max: 4 }),
    fate: fc.constantFrom("streamed", "twice", "lost", "hint"),
  }),
  fc.record({ kind: fc.constantFrom("tick", "breaks", "here", "away", "moves", "listens", "fails") }),
);

test("whatever becomes of streams, owners and looks: every event once, in order, and the end once", () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { commit, listen, tick, streams, state, feed, failWith, settled } = world();
      const listeners = [listen()];
      let moves = 1;
      /** Its events by who holds it; only the stream of the owner as it is now is sent anything. */
      const happen = (count: number, fate: string, isEnd: boolean) => {
        const [firstSeq, lines] = commit(count, isEnd);
        if (state.isHere) return feed.published(JOB, firstSeq, lines, isEnd);
        const stream = streams.findLast(({ isOpen, owner }) => isOpen && owner === state.owner);
        if (fate === "hint") stream?.send(firstSeq + count, [], isEnd);
        else if (fate !== "lost") stream?.send(firstSeq, lines, isEnd);
        if (fate === "twice") stream?.send(firstSeq, lines, isEnd);
      };
      for (const one of steps) {
        failWith(null);
        if (one.kind === "commit") happen(one.count, one.fate, false);
        if (one.kind === "tick") await tick();
        if (one.kind === "breaks") for (const stream of streams) stream.fail(new Error("cut"));
        if (one.kind === "moves") state.owner = moves % 3 === 0 ? null : `node_b/${++moves}`;
        if (one.kind === "listens") listeners.push(listen());
        if (one.kind === "fails") {
          failWith(new Error("no connection"));
          await tick();
        }
        // What other nodes have committed is told before this one, or not at all: it takes over what is on disk.
        if (one.kind === "here" && !state.isHere) {
          await tick();
          state.isHere = true;
        }
        if (one.kind === "away") state.isHere = false;
        await settled();
      }
      failWith(null);
      state.isHere = false;
      happen(1, "lost", true);
      for (let looks = 0; looks < 4; looks++) await tick();
      const last = state.history.length;
      for (const { got, ends } of listeners) {
        // What comes before is in the history, which each reads for itself.
        const first = Number(got[0]?.slice("event ".length));
        assert.deepEqual(got, from(first, last));
        assert.equal(ends(), 1);
      }
    }),
    { numRuns: 150 },
  ));
