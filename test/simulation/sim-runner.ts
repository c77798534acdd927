// Commands of the simulated world: slow, failing, answering twice or too late. Their result depends on the message
// alone, never on the attempt. What an agent's commands do beside that is told by the first word of its name:
//
//   fails    every attempt fails
//   refuses  every attempt fails in a way that another attempt would not change
//   asks     asks a person, by a name made of the message, and waits for that answer in its file
//   wonders  asks without a name, and waits for any answer in its file
//   writes   asks in its result, and works once the answer is sent to it

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  noActions,
  type TaskOutcome,
  type TaskRef,
  type TaskRunner,
  type TaskStart,
} from "../../src/engine/task-port.ts";
import type { Process, World } from "./world.ts";

/** A command that runs, and the answers in its file. */
interface Running {
  readonly task: TaskStart;
  readonly answers: Set<string>;
  /** The answer without which it does not go on; "any" for whichever comes. */
  readonly waitsFor: string | null;
  /** Set once it goes on, and only has to end. */
  isEnding: boolean;
}

export class SimRunner implements TaskRunner {
  readonly #world: World;
  readonly #owned: () => Process;
  readonly #stopped = new Set<string>();
  readonly #running = new Map<string, Running>();

  constructor(world: World, owned: () => Process) {
    this.#world = world;
    this.#owned = owned;
  }

  start(task: TaskStart): void {
    const world = this.#world;
    world.checker.taskStarted(task, this.#owned().name);
    const { random } = world;
    const question = this.#questionOf(task);
    const running: Running = {
      task,
      answers: new Set(),
      waitsFor: question === null ? null : ((question.request_id as string | undefined) ?? "any"),
      isEnding: false,
    };
    this.#running.set(key(task.ref), running);
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
    if (running.isEnding) return;
    running.isEnding = true;
    const { random, faults } = this.#world;
    const takesMs = random.chance(faults.taskIsSlow) ? random.between(100, 5_000) : random.between(0, 20);
    this.#world.plan(takesMs, this.#owned(), () => this.#end(running));
  }

  #end({ task, waitsFor, answers }: Running): void {
    const { random, faults } = this.#world;
    this.#running.delete(key(task.ref));
    const isUnanswered = waitsFor !== null && answers.size === 0;
    const outcome = this.#stopped.has(key(task.ref)) ? interrupted : this.#outcome(task, isUnanswered);
    this.#world.checker.taskReported(task.ref);
    this.#owned().engine.taskEnded(task.ref, outcome);
    if (random.chance(faults.taskAnswersTwice)) {
      // Late enough to arrive while the next attempt runs.
      this.#world.plan(random.between(0, 300), this.#owned(), () => {
        this.#owned().engine.taskEnded(task.ref, this.#outcome(task, isUnanswered));
      });
    }
  }

  #outcome(task: TaskStart, mustFail: boolean): TaskOutcome {
    const { random, faults } = this.#world;
    if (task.agentId.startsWith("refuses")) {
      const message = "It will never work.";
      return { kind: "failed", code: "executor.invalid_output", message, command: null, artifacts: [] };
    }
    const fails = mustFail || task.agentId.startsWith("fails");
    if (fails || (!isLastChance(task) && random.chance(faults.taskFails))) {
      const command = { exitCode: 1, signal: null, stdout: "", stderr: "no", durationMs: 1, usage: null };
      return { kind: "failed", code: "executor.exit_nonzero", message: "exit 1", command, artifacts: [] };
    }
    const command = { exitCode: 0, signal: null, stdout: "ok", stderr: "", durationMs: 1, usage: null };
    const done = { kind: "succeeded", command, artifacts: [], observation: null } as const;
    const { envelope } = task;
    if (task.agentId.startsWith("writes") && envelope.type !== "human_response") {
      const payload = { prompt: `What shall become of ${envelope.message_id}?` };
      return { ...done, actions: { ...noActions, events: [{ type: "human_input_requested", payload }] } };
    }
    return { ...done, actions: { ...noActions, emits: [{ type: "work", body: envelope.body, to: null }] } };
  }

  stop(ref: TaskRef): void {
    this.#stopped.add(key(ref));
    const running = this.#running.get(key(ref));
    if (running !== undefined) this.#endLater(running);
  }

  send(): void {}

  respond(ref: TaskRef, line: string): void {
    const running = this.#running.get(key(ref));
    if (running === undefined) return;
    this.#read(running, line);
    this.#goOnIfAnswered(running);
  }
}

const isLastChance = ({ ref }: TaskStart) => ref.attempt >= 3;
const interrupted: TaskOutcome = { kind: "interrupted", reason: "stopped" };
const key = (ref: TaskRef) => `${ref.jobId}/${ref.taskSeq}/${ref.attempt}`;
