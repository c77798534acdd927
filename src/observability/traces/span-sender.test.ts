// The way out of finished spans: batches, room, trouble, and the end. The clock and the collector are the test's own.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FinishedSpan } from "./span.ts";
import { SpanSender } from "./span-sender.ts";

function span(n: number): FinishedSpan {
  return {
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: n.toString(16).padStart(16, "0"),
    parentSpanId: null,
    isParentRemote: false,
    isCallersTrace: false,
    name: `span ${n}`,
    startMs: 0,
    endMs: 1,
    error: null,
    attributes: {},
    events: [],
    droppedEvents: 0,
  };
}

/** A sender whose clock moves when the test says so, and whose batches end when the test says so. */
class Sending {
  readonly log: [message: string, fields: object][] = [];
  /** Sizes of the batches, in the order in which they were sent. */
  readonly batches: number[] = [];
  readonly sender: SpanSender;
  isClosed = false;
  /** Ends the batch that is under way. */
  end: ((error?: Error) => void) | null = null;
  #timers: { run: () => void }[] = [];

  constructor(limits: { readonly queueMax?: number; readonly batchMax?: number } = {}) {
    const log = (fields: object, message: string) => this.log.push([message, fields]);
    this.sender = new SpanSender({
      outlet: {
        send: (spans) => {
          assert.equal(this.end, null, "one batch at a time");
          this.batches.push(spans.length);
          return new Promise((resolve, reject) => {
            this.end = (error) => {
              this.end = null;
              if (error === undefined) resolve();
              else reject(error);
            };
          });
        },
        close: async () => {
          this.isClosed = true;
          this.end?.(new Error("closed"));
        },
      },
      clock: {
        nowMs: () => 0,
        steadyMs: () => 0,
        soon: () => assert.fail("not used"),
        after: (_delayMs, run) => {
          const timer = { run };
          this.#timers.push(timer);
          return () => {
            this.#timers = this.#timers.filter((one) => one !== timer);
          };
        },
      },
      log: { warn: log, error: log },
      shownUrl: "http://collector",
      queueMax: limits.queueMax ?? 100,
      batchMax: limits.batchMax ?? 10,
      delayMs: 1_000,
    });
  }

  add(count: number): void {
    for (let n = 0; n < count; n++) this.sender.add(span(n));
  }

  /** Lets every delay be over. */
  async wait(): Promise<void> {
    const timers = this.#timers;
    this.#timers = [];
    for (const { run } of timers) run();
    await settled();
  }

  async answer(error?: Error): Promise<void> {
    assert.ok(this.end !== null, "a batch is under way");
    this.end(error);
    await settled();
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
const down = new Error("connect ECONNREFUSED");

describe("batches", () => {
  test("wait for company, go at once when they are full, and one at a time", async () => {
    const sending = new Sending();
    sending.add(3);
    assert.deepEqual(sending.batches, []);
    await sending.wait();
    assert.deepEqual(sending.batches, [3]);
    sending.add(25);
    assert.deepEqual(sending.batches, [3]);
    await sending.answer();
    assert.deepEqual(sending.batches, [3, 10]);
    await sending.answer();
    await sending.answer();
    assert.deepEqual(sending.batches, [3, 10, 10]);
    await sending.wait();
    assert.deepEqual(sending.batches, [3, 10, 10, 5]);
    await sending.answer();
    assert.equal(sending.sender.lost, 0);
    assert.deepEqual(sending.log, []);
  });
});

describe("trouble", () => {
  test("is logged once when it begins and once when it is over, with what was lost", async () => {
    const sending = new Sending();
    sending.add(4);
    await sending.wait();
    await sending.answer(down);
    sending.add(15);
    assert.deepEqual(sending.batches, [4], "the next batch waits its time, though it is full");
    await sending.wait();
    await sending.answer(down);
    assert.deepEqual(sending.log, [
      [
        "traces cannot be sent to http://collector: spans are dropped until they can",
        { reason: down.message },
      ],
    ]);
    await sending.wait();
    await sending.answer();
    assert.deepEqual(sending.log[1], [
      "traces are sent to http://collector again; spans were lost",
      { spans: 14 },
    ]);
    assert.equal(sending.log.length, 2);
    assert.equal(sending.sender.lost, 14);
  });

  test("a full queue drops what comes, counts it, and is no reason to send more slowly", async () => {
    const sending = new Sending({ queueMax: 20 });
    sending.add(50);
    assert.deepEqual(sending.batches, [10]);
    assert.equal(sending.sender.lost, 20);
    assert.equal(sending.log.length, 1);
    await sending.answer();
    assert.deepEqual(sending.batches, [10, 10]);
    await sending.answer();
    assert.deepEqual(sending.batches, [10, 10, 10]);
    await sending.answer();
    assert.deepEqual(sending.log[1]?.[1], { spans: 20 });
  });
});

describe("closing", () => {
  test("sends what waits, and then takes nothing more", async () => {
    const sending = new Sending();
    sending.add(13);
    const closed = sending.sender.close(1_000);
    for (let batches = 0; batches < 2; batches++) {
      await settled();
      await sending.answer();
    }
    await closed;
    assert.deepEqual(sending.batches, [10, 3]);
    assert.ok(sending.isClosed);
    sending.add(20);
    assert.deepEqual(sending.batches, [10, 3]);
    assert.deepEqual(sending.log, []);
    await sending.sender.close(1_000);
  });

  test("ends at its limit when the collector does not answer, and says what was not sent", async () => {
    const sending = new Sending();
    sending.add(12);
    const closed = sending.sender.close(1_000);
    await settled();
    await sending.wait();
    await closed;
    assert.deepEqual(sending.log.at(-1), ["spans were not sent to http://collector", { spans: 12 }]);
    assert.equal(sending.sender.lost, 12);
  });

  test("does not wait for a collector that is known to be away", async () => {
    const sending = new Sending();
    sending.add(3);
    await sending.wait();
    await sending.answer(down);
    sending.add(4);
    await sending.sender.close(1_000);
    assert.deepEqual(sending.batches, [3]);
    assert.deepEqual(sending.log.at(-1)?.[1], { spans: 7 });
  });

  test("of what never had anything to send is quiet", async () => {
    const sending = new Sending();
    await sending.sender.close(1_000);
    assert.deepEqual(sending.log, []);
  });
});
