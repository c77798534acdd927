// The streams' share of the thread, on a thread whose clock the test moves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Pacer, type Thread } from "./sse-pacer.ts";

/** A thread on which time passes only when something works or the test waits. */
class ManualThread implements Thread {
  #nowMs = 1_000;
  #busyMs = 300;
  /** How often something that was due was run. */
  turns = 0;
  #due: { readonly atMs: number; readonly run: () => void }[] = [];

  nowMs = () => this.#nowMs;
  busyMs = () => this.#busyMs;
  soon = (run: () => void) => void this.after(0, run);
  after = (delayMs: number, run: () => void) => {
    const timer = { atMs: this.#nowMs + delayMs, run };
    this.#due.push(timer);
    return () => {
      this.#due = this.#due.filter((one) => one !== timer);
    };
  };

  work(ms: number): void {
    this.#nowMs += ms;
    this.#busyMs += ms;
  }

  /** Lets `ms` pass, in which the thread does `busyShare` of other work; runs what becomes due. */
  async pass(ms: number, busyShare: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    while (this.#nowMs < endMs) {
      const next = this.#due.toSorted((a, b) => a.atMs - b.atMs)[0];
      const untilMs = Math.min(endMs, Math.max(this.#nowMs, next?.atMs ?? endMs));
      this.#busyMs += (untilMs - this.#nowMs) * busyShare;
      this.#nowMs = untilMs;
      if (next === undefined || next.atMs > untilMs) continue;
      this.#due = this.#due.filter((one) => one !== next);
      this.turns++;
      next.run();
      await Promise.resolve();
    }
  }
}

/** A pacer whose work never ends; each piece takes `pieceMs`. */
function endless(pieceMs: number) {
  const thread = new ManualThread();
  const state = { thread, workedMs: 0, longestMs: 0, progress: 0 };
  let sliceMs = 0;
  let turn = -1;
  const pacer = new Pacer({
    thread,
    progress: () => state.progress,
    work() {
      sliceMs = thread.turns === turn ? sliceMs + pieceMs : pieceMs;
      turn = thread.turns;
      thread.work(pieceMs);
      state.workedMs += pieceMs;
      state.longestMs = Math.max(state.longestMs, sliceMs);
      return true;
    },
  });
  return { pacer, state };
}

/** Work of a twentieth of a millisecond that notes when it is done. */
function occasional() {
  const thread = new ManualThread();
  const times: number[] = [];
  const work = () => {
    times.push(thread.nowMs());
    thread.work(0.05);
    return false;
  };
  return { thread, times, pacer: new Pacer({ thread, progress: () => thread.nowMs(), work }) };
}

const isAbout = (value: number, wanted: number) =>
  assert.ok(Math.abs(value - wanted) <= wanted * 0.1, `${value} is not about ${wanted}`);

test("endless work takes three hundredths of a thread that is busy with runs", async () => {
  const { pacer, state } = endless(0.1);
  pacer.wake();
  for (let i = 0; i < 1_000; i++) {
    state.progress++;
    await state.thread.pass(10, 1);
  }
  isAbout(state.workedMs, 300);
});

test("a thread that only waits for the runs' commands gives no more than that", async () => {
  const { pacer, state } = endless(0.1);
  pacer.wake();
  for (let i = 0; i < 1_000; i++) {
    state.progress++;
    await state.thread.pass(10, 0);
  }
  isAbout(state.workedMs, 300);
});

test("while no run makes progress, idle time is used as well, busy time is not", async () => {
  for (const [busyShare, wanted] of [
    [0, 3_400],
    [1, 300],
  ] as const) {
    const { pacer, state } = endless(0.1);
    pacer.wake();
    await state.thread.pass(10_000, busyShare);
    isAbout(state.workedMs, wanted);
  }
});

test("news is not kept waiting until the loop comes round, unless its time is to be earned first", async () => {
  const { thread, times, pacer } = occasional();
  pacer.wakeAtOnce();
  pacer.wakeAtOnce();
  await Promise.resolve();
  assert.equal(times.length, 1);
  for (let i = 0; i < 6; i++) {
    const from = thread.busyMs();
    thread.work(5);
    pacer.charge(from);
  }
  pacer.wakeAtOnce();
  await Promise.resolve();
  assert.equal(times.length, 1);
  await thread.pass(1_000, 1);
  assert.equal(times.length, 2);
});

test("a long rest saves up a few milliseconds only", async () => {
  const { pacer, state } = endless(0.1);
  await state.thread.pass(100_000, 0);
  pacer.wake();
  await state.thread.pass(10_000, 1);
  isAbout(state.workedMs, 300);
});

test("work that has no end is cut into slices", async () => {
  const { pacer, state } = endless(0.1);
  pacer.wake();
  await state.thread.pass(1_000, 0);
  assert.ok(state.longestMs < 2.2, String(state.longestMs));
});

test("a little work is done at once, again and again, however busy the thread is", async () => {
  const { thread, times, pacer } = occasional();
  for (let i = 1; i <= 500; i++) {
    pacer.wake();
    pacer.wake();
    await thread.pass(0.1, 1);
    assert.equal(times.length, i);
    await thread.pass(4, 1);
  }
});

test("work outside of slices is charged, and what overlaps is charged once", async () => {
  const { thread, times, pacer } = occasional();
  for (let i = 0; i < 10; i++) {
    const from = thread.busyMs();
    thread.work(4);
    pacer.charge(from);
    pacer.charge(from);
  }
  const startMs = thread.nowMs();
  pacer.wake();
  await thread.pass(2_000, 1);
  // 40 ms were used; 20 had been saved, and 1.2 earned meanwhile: 18.8 are missing, at three hundredths of the time.
  isAbout(times[0]! - startMs, 627);
});

test("what held the thread up for long is not the streams' to pay", async () => {
  const { thread, times, pacer } = occasional();
  for (let i = 0; i < 5; i++) {
    const from = thread.busyMs();
    thread.work(500);
    pacer.charge(from);
  }
  const startMs = thread.nowMs();
  pacer.wake();
  await thread.pass(2_000, 1);
  assert.equal(times[0], startMs);
});
