// Commands, modules and watched files of the simulated world: slow, failing, answering twice or too late, ended when
// their time is over. Their result depends on the message alone, never on the attempt; and each counts in its agent's
// state how many came before it. What an agent's tasks do beside that is told by the first word of its name:
//
//   fails    every attempt fails
//   refuses  every attempt fails in a way that another attempt would not change
//   hangs    no attempt ends before its time is over
//   asks     asks a person, by a name made of the message, and waits for that answer in its file
//   wonders  asks without a name, and waits for any answer in its file
//   writes   asks in its result, and works once the answer is sent to it

import assert from "node:assert/strict";
import type { FailureCode } from "../../src/engine/failure-catalogue.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  type CommandResult,
  noActions,
  type TaskKind,
  type TaskOutcome,
  type TaskRef,
  type TaskRunner,
  type TaskStart,
} from "../../src/engine/task-port.ts";
import { judgeMachine } from "./sim-machine.ts";
import type { Process, World } from "./world.ts";

/** A command that runs, and the answers in its file. */
interface Running {
  readonly task: TaskStart;
  readonly answers: Set<string>;
  /** The answer without which it does not go on; "any" for whichever comes. */
  readonly waitsFor: string | null;
  readonly startedAtMs: number;
  /** Set once it goes on, and only has to end. */
  endsAtMs: number | null;
  /** Ended by the guard, though its runtime does not know yet. */
  isKilled: boolean;
}

export class SimRunner implements TaskRunner {
  readonly #world: World;
  readonly #owned: () => Process;
  readonly #stopped = new Set<string>();
  readonly #running = new Map<string, Running>();
  #waiters: (() => void)[] = [];
  /** Until when commands may run; for ever where no lease says otherwise. */
  #untilMs = Number.POSITIVE_INFINITY;

  constructor(world: World, owned: () => Process) {
    this.#world = world;
    this.#owned = owned;
  }

  start(task: TaskStart): void {
    const world = this.#world;
    if (world.nowMs >= this.#untilMs) {
      world.counts.add("start refused behind the lease");
      world.plan(0, this.#owned(), () => this.#owned().engine.taskEnded(task.ref, interrupted));
      return;
    }
    world.checker.taskStarted(task, this.#owned().name);
    const { random } = world;
    const question = this.#questionOf(task);
    const running: Running = {
      task,
      answers: new Set(),
      waitsFor: question === null ? null : ((question.request_id as string | undefined) ?? "any"),
      startedAtMs: world.nowMs,
      endsAtMs: null,
      isKilled: false,
    };
    this.#running.set(key(task.ref), running);
    const going = [...this.#running.values()].filter((one) => !this.#stopped.has(key(one.task.ref)));
    judgeMachine(going.map((one) => one.task));
    if (task.kind === "command" && world.cluster !== null) world.checker.commandBegins(task.ref);
    if (task.kind === "file") {
      this.#endAt(running, this.#fileAtMs(task) + random.between(0, 500), null);
      return;
    }
    for (const line of task.humanResponses) this.#read(running, line);
    if (random.chance(0.3)) this.#report(task, 10, { type: "progress", payload: { half: true } });
    if (random.chance(0.3)) this.#report(task, 5, { type: "log", payload: { level: "info", message: "so" } });
    // A moment later, so that an answer may be there before the question is asked again.
    const askAfterMs = random.between(0, 20);
    if (question !== null)
      this.#report(task, askAfterMs, { type: "human_input_requested", payload: question });
    // Some fail before anybody has answered.
    const givesUp = !isLastChance(task) && random.chance(world.faults.taskFails / 2);
    if (question === null || givesUp) this.#endLater(running);
    else world.plan(askAfterMs, this.#owned(), () => this.#goOnIfAnswered(running));
  }

  /** When the file appears that a sensor watches, which has nothing to do with who watches it; some are there already. */
  #fileAtMs({ ref, agentId }: TaskStart): number {
    const { random, filesAtMs, nowMs, counts } = this.#world;
    const file = `${ref.jobId}/${agentId}`;
    const known = filesAtMs.get(file);
    if (known !== undefined) return known;
    const isThere = random.chance(0.3);
    if (isThere) counts.add("file that was there before its sensor");
    const atMs = isThere ? nowMs : nowMs + random.between(1, 3_000);
    filesAtMs.set(file, atMs);
    return atMs;
  }

  #questionOf({ agentId, envelope }: TaskStart): JsonObject | null {
    const { random } = this.#world;
    // Of the message alone, like the result.
    const isShort = envelope.message_id.length % 2 === 0;
    const time = isShort
      ? { timeout_seconds: random.between(1, 3_000) / 1_000, default_action: "later" }
      : {};
    const prompt = `May I go on with ${envelope.message_id}?`;
    if (agentId.startsWith("asks")) return { request_id: `ask-${envelope.message_id}`, prompt, ...time };
    return agentId.startsWith("wonders") ? { prompt, ...time } : null;
  }

  #report(
    task: TaskStart,
    delayMs: number,
    event: { readonly type: string; readonly payload: JsonObject },
  ): void {
    this.#world.plan(delayMs, this.#owned(), () => this.#owned().engine.taskEvents(task.ref, [event]));
  }

  #read(running: Running, line: string): void {
    const answer = JSON.parse(line) as { request_id: string; decision: string };
    const { ref } = running.task;
    this.#world.checker.answerSeen(ref.jobId, answer);
    assert.ok(
      !running.answers.has(answer.request_id),
      `I8: ${key(ref)} was given ${answer.request_id} twice`,
    );
    running.answers.add(answer.request_id);
  }

  #goOnIfAnswered(running: Running): void {
    const { waitsFor, answers } = running;
    const isAnswered = waitsFor === "any" ? answers.size > 0 : waitsFor !== null && answers.has(waitsFor);
    if (isAnswered) this.#endLater(running);
  }

  #endLater(running: Running): void {
    const { random, faults } = this.#world;
    const { task, startedAtMs } = running;
    const isSlow = !isLastChance(task) && random.chance(faults.taskIsSlow);
    const takesMs = isSlow ? random.between(100, 5_000) : random.between(0, 20);
    const { nowMs } = this.#world;
    const timeoutAtMs = task.timeoutMs === null ? Number.POSITIVE_INFINITY : startedAtMs + task.timeoutMs;
    const isStopped = this.#stopped.has(key(task.ref));
    const hangs = task.agentId.startsWith("hangs") && !isStopped;
    const isTimedOut = hangs || (nowMs + takesMs >= timeoutAtMs && !isStopped);
    this.#endAt(running, isTimedOut ? timeoutAtMs : nowMs + takesMs, isTimedOut ? "timeout" : null);
  }

  #endAt(running: Running, atMs: number, reason: "timeout" | null): void {
    if (running.endsAtMs !== null) return;
    running.endsAtMs = atMs;
    assert.ok(Number.isFinite(atMs), "what hangs has a limit");
    this.#world.plan(atMs - this.#world.nowMs, this.#owned(), () => this.#end(running, reason));
  }

  #end(running: Running, reason: "timeout" | null): void {
    const { task, waitsFor, answers, isKilled } = running;
    const { random, faults, checker, counts } = this.#world;
    // One that was asked to stop before its file was there has already said so.
    if (!this.#running.delete(key(task.ref))) return;
    if (task.kind === "command" && !running.isKilled) this.#world.checker.commandEnds(task.ref);
    const mustFail = waitsFor !== null && answers.size === 0;
    const ending = (): TaskOutcome => {
      if (this.#stopped.has(key(task.ref))) return interrupted;
      if (isKilled) return failed(task.kind, "once");
      return reason === "timeout" ? failed(task.kind, "timeout") : this.#outcome(task, mustFail);
    };
    const outcome = ending();
    if (task.kind === "module") counts.add("module");
    checker.taskReported(task.ref, outcome);
    this.#owned().engine.taskEnded(task.ref, outcome);
    if (this.#running.size === 0) for (const resolve of this.#waiters.splice(0)) resolve();
    if (random.chance(faults.taskAnswersTwice)) {
      // Late enough to arrive while the next attempt runs.
      this.#world.plan(random.between(0, 300), this.#owned(), () => {
        this.#owned().engine.taskEnded(task.ref, this.#outcome(task, mustFail));
      });
    }
  }

  #outcome(task: TaskStart, mustFail: boolean): TaskOutcome {
    const { random, faults } = this.#world;
    const { agentId, envelope, kind } = task;
    if (agentId.startsWith("refuses")) return failed(kind, "for good");
    if (kind === "file") return { ...succeeded(kind), observation: { path: agentId, size: 1 } };
    const fails = mustFail || agentId.startsWith("fails");
    if (fails || (!isLastChance(task) && random.chance(faults.taskFails))) return failed(kind, "once");
    const state = task.agentState as { readonly worked?: number };
    const actions = { ...noActions, nextState: { worked: (state.worked ?? 0) + 1 } };
    const done = succeeded(kind);
    if (agentId.startsWith("writes") && envelope.type !== "human_response") {
      const payload = { prompt: `What shall become of ${envelope.message_id}?` };
      return { ...done, actions: { ...actions, events: [{ type: "human_input_requested", payload }] } };
    }
    return { ...done, actions: { ...actions, emits: [{ type: "work", body: envelope.body, to: null }] } };
  }

  stop(ref: TaskRef): void {
    this.#stopped.add(key(ref));
    const running = this.#running.get(key(ref));
    if (running === undefined) return;
    if (running.task.kind === "file") this.#world.plan(0, this.#owned(), () => this.#end(running, null));
    else this.#endLater(running);
  }

  send(): void {}

  /** Those that run. */
  get attempts(): number {
    return this.#running.size;
  }

  /** Resolves when nothing runs. */
  async ended(): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /**
   * The guard of commands, which is no part of the process.
   *
   * @param onOver told by it that it has ended all, when the process can hear it
   */
  mayRunFor(ms: number, onOver: () => void): void {
    const untilMs = this.#world.nowMs + ms;
    this.#untilMs = untilMs;
    const guard = () => {
      if (this.#untilMs !== untilMs || !this.#owned().isAlive) return;
      this.#world.plan(0, this.#owned(), onOver);
      this.killed();
    };
    this.#world.plan(ms, null, guard, true);
  }

  /** No command runs any more; what becomes of their reports is another matter. */
  killed(): void {
    for (const running of this.#running.values()) {
      if (running.task.kind !== "command" || running.isKilled) continue;
      this.#world.checker.commandEnds(running.task.ref);
      // One that has ended by itself already, which its process has not heard yet.
      if (running.endsAtMs !== null && running.endsAtMs <= this.#world.nowMs) continue;
      running.isKilled = true;
      if (!this.#owned().isAlive) continue;
      this.#world.counts.add("command ended by the guard");
      this.#world.plan(0, this.#owned(), () => this.#end(running, null));
    }
  }

  respond(ref: TaskRef, line: string): void {
    const running = this.#running.get(key(ref));
    if (running === undefined) return;
    this.#read(running, line);
    this.#goOnIfAnswered(running);
  }
}

const commandResult = (exitCode: number): CommandResult => ({
  exitCode,
  signal: null,
  stdout: "",
  stderr: exitCode === 0 ? "" : "no",
  durationMs: 1,
  usage: null,
});

function succeeded(kind: TaskKind) {
  const command = kind === "command" ? commandResult(0) : null;
  return { kind: "succeeded", actions: noActions, command, artifacts: [], observation: null } as const;
}

type Cause = "once" | "for good" | "timeout";

const codes: Readonly<Record<TaskKind, Readonly<Record<Cause, FailureCode>>>> = {
  command: {
    once: "executor.exit_nonzero",
    "for good": "executor.invalid_output",
    timeout: "executor.timeout",
  },
  module: { once: "module.threw", "for good": "module.load_failed", timeout: "module.timeout" },
  file: { once: "sensor.file_invalid", "for good": "sensor.file_invalid", timeout: "sensor.file_invalid" },
};

function failed(kind: TaskKind, cause: Cause): TaskOutcome {
  const command = kind === "command" && cause !== "for good" ? commandResult(1) : null;
  return { kind: "failed", code: codes[kind][cause], message: cause, command, artifacts: [] };
}

const isLastChance = ({ ref }: TaskStart) => ref.attempt >= 3;
const interrupted: TaskOutcome = { kind: "interrupted", reason: "stopped" };
const key = (ref: TaskRef) => `${ref.jobId}/${ref.taskSeq}/${ref.attempt}`;
