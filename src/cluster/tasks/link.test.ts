import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { type Frame, Link, WrongFrame } from "./link.ts";

/** Two links, with connections between them that the test makes, breaks and lets deliver frames. */
class Pair {
  readonly got: { a: number[]; b: number[] } = { a: [], b: [] };
  readonly a = new Link<number, number>({ receive: (message) => this.got.a.push(message) });
  readonly b = new Link<number, number>({ receive: (message) => this.got.b.push(message) });
  #underWay: { to: "a" | "b"; frame: Frame<number> }[] = [];

  connect(): void {
    this.break();
    const underWay = this.#underWay;
    const [aHas, bHas] = [this.a.received, this.b.received];
    this.a.connected((frame) => underWay.push({ to: "b", frame }), bHas);
    this.b.connected((frame) => underWay.push({ to: "a", frame }), aHas);
  }

  /** What is under way is lost. */
  break(): void {
    this.#underWay = [];
    this.a.disconnected();
    this.b.disconnected();
  }

  /** Delivers one frame. @returns whether there was any */
  deliver(to?: "a" | "b"): boolean {
    const at = this.#underWay.findIndex((one) => to === undefined || one.to === to);
    const [one] = at < 0 ? [] : this.#underWay.splice(at, 1);
    if (one !== undefined) this[one.to].frame(one.frame);
    return one !== undefined;
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("send a", "send b") },
  { weight: 4, arbitrary: fc.constantFrom("deliver a", "deliver b") },
  { weight: 1, arbitrary: fc.constantFrom("break", "connect", "confirm") },
);

test("each message is received once and in order, however often the connection breaks", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const pair = new Pair();
      const sent = { a: 0, b: 0 };
      for (const one of steps) {
        if (one === "send a") pair.a.send(++sent.a);
        else if (one === "send b") pair.b.send(++sent.b);
        else if (one === "deliver a") pair.deliver("a");
        else if (one === "deliver b") pair.deliver("b");
        else if (one === "break") pair.break();
        else if (one === "connect") pair.connect();
        else for (const link of [pair.a, pair.b]) link.confirmReceived();
      }
      pair.connect();
      while (pair.deliver());
      for (const link of [pair.a, pair.b]) link.confirmReceived();
      while (pair.deliver());
      assert.deepEqual(
        pair.got.b,
        Array.from({ length: sent.a }, (_, i) => i + 1),
      );
      assert.deepEqual(
        pair.got.a,
        Array.from({ length: sent.b }, (_, i) => i + 1),
      );
      assert.deepEqual([pair.a.waiting, pair.b.waiting], [0, 0]);
    }),
    { numRuns: 300 },
  );
});

test("what was received is confirmed after 32 messages without anything to send", () => {
  const confirmed: number[] = [];
  const pair = new Pair();
  const sender = new Link<number, number>({
    receive: () => {},
    confirmed: () => confirmed.push(sender.waiting),
  });
  const frames: Frame<number>[] = [];
  sender.connected((frame) => void frames.push(frame), 0);
  pair.b.connected((frame) => sender.frame(frame), 0);
  for (let n = 1; n <= 40; n++) sender.send(n);
  for (const frame of frames.splice(0, 31)) pair.b.frame(frame);
  assert.deepEqual([sender.waiting, confirmed], [40, []]);
  for (const frame of frames.splice(0)) pair.b.frame(frame);
  assert.deepEqual([sender.waiting, confirmed], [8, [8]]);
});

test("an end that has lost messages, repeats one, or confirms what was never sent is refused", () => {
  const link = new Link<number, number>({ receive: () => {} });
  link.connected(() => {}, 0);
  link.send(1);
  assert.throws(() => link.frame({ seq: 0, received: 2 }), WrongFrame);
  link.frame({ seq: 1, received: 1, message: 7 });
  assert.throws(() => link.frame({ seq: 1, received: 1, message: 7 }), WrongFrame);
  assert.throws(() => link.frame({ seq: 3, received: 1, message: 7 }), WrongFrame);
  assert.throws(() => link.connected(() => {}, 0), WrongFrame);
  for (const wrong of [-1, 1.5, Number.NaN]) {
    assert.throws(() => link.frame({ seq: 0, received: wrong }), WrongFrame);
  }
});
