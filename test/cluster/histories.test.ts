// The judge of histories finds what it is there to find, and nothing in a history that is right.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import type { SeenEvent } from "../support/gateway-api.ts";
import { type ToldRun, wrongWithList, wrongWithRun } from "./histories.ts";

type Line = readonly [type: string, payload?: JsonObject];

const begin: readonly Line[] = [["job_pending"], ["job_validated"], ["job_scheduled"], ["job_running"]];
const attempt = (n: number) => ({ task: 1, attempt: n });
const right: readonly Line[] = [
  ...begin,
  ["agent_message_received", { message_id: "m1" }],
  ["sandbox_job_started", attempt(1)],
  ["job_recovered"],
  ["executor_interrupted", attempt(1)],
  ["job_paused"],
  ["job_resumed"],
  ["sandbox_job_started", attempt(2)],
  ["log"],
  ["sandbox_job_completed", attempt(2)],
  ["agent_message_received", { message_id: "m2" }],
  ["job_completed"],
];

function eventsOf(lines: readonly Line[]): readonly SeenEvent[] {
  return lines.map(([type, payload = {}], i) => ({
    id: i + 1,
    run_id: "run_1",
    type,
    timestamp: "2026-11-24T00:00:00.000Z",
    agent_id: null,
    payload,
  }));
}

function told(events: readonly SeenEvent[], more: Partial<ToldRun> = {}): ToldRun {
  return { status: "completed", events, streamed: events, files: ["made"], ...more };
}

const wrongWith = (events: readonly SeenEvent[], more: Partial<ToldRun> = {}) =>
  wrongWithRun("run_1", new Map([["a", told(events, more)]]));

/** What is wrong is one thing, and it is this. */
function finds(wrong: readonly string[], what: RegExp): void {
  assert.equal(wrong.length, 1, wrong.join("\n"));
  assert.match(String(wrong[0]), what);
}

const without = (type: string) => right.filter(([name]) => name !== type);
const behind = (type: string, ...more: readonly Line[]) =>
  right.flatMap((line) => (line[0] === type ? [line, ...more] : [line]));

describe("the judge of histories", () => {
  test("finds nothing wrong with a right one", () => {
    const events = eventsOf(right);
    assert.deepEqual(
      wrongWithRun(
        "run_1",
        new Map([
          ["a", told(events)],
          ["b", told(structuredClone(events))],
        ]),
      ),
      [],
    );
    const cancelled = { status: "cancelled" };
    assert.deepEqual(wrongWith(eventsOf([["job_pending"], ["job_cancelled"]]), cancelled), []);
    assert.deepEqual(wrongWith(eventsOf([["job_cancelled"]]), cancelled), []);
  });

  test("finds a gap and a repetition", () => {
    const events = eventsOf(right);
    finds(wrongWith(events.toSpliced(4, 1)), /event 6 comes where 5 is expected/);
    const log = events.findIndex(({ type }) => type === "log");
    finds(wrongWith(events.toSpliced(log, 0, events[log]!)), /event 12 comes where 13 is expected/);
  });

  test("finds a missing end, a second one, and what comes behind it", () => {
    finds(wrongWith(eventsOf(without("job_completed"))), /it has not ended; its last event is agent_message/);
    finds(wrongWith(eventsOf([...right, ["log"]])), /log comes behind its end/);
    const twice = wrongWith(eventsOf([...right, ["job_failed"]]));
    assert.match(twice.join(), /ends 2 times.*job_failed comes behind its end/);
    finds(wrongWith(eventsOf(right), { status: "failed" }), /its record says failed behind job_completed/);
  });

  test("finds statuses in a wrong order", () => {
    finds(wrongWith(eventsOf(behind("job_resumed", ["job_resumed"]))), /job_resumed comes twice, as 11/);
    finds(wrongWith(eventsOf(without("job_resumed"))), /a command is started while it is paused, as 10/);
    finds(
      wrongWith(eventsOf(without("job_running"))),
      /it begins with job_pending, job_validated, job_scheduled$/,
    );
    finds(
      wrongWith(eventsOf(behind("job_running", ["job_pending"]))),
      /it begins with .*job_running, job_pending$/,
    );
  });

  test("finds a message that is received twice", () => {
    const line: Line = ["agent_message_received", { message_id: "m1" }];
    finds(wrongWith(eventsOf(behind("job_paused", line))), /received m1 again/);
  });

  test("finds two attempts at once, a repeated one, and one behind the success", () => {
    finds(wrongWith(eventsOf(without("executor_interrupted"))), /attempt 2 .* starts while attempt 1 runs/);
    const again: Line = ["sandbox_job_started", attempt(1)];
    const ended: Line = ["sandbox_job_failed", attempt(1)];
    finds(wrongWith(eventsOf(behind("job_recovered", ended, again))), /attempt 1 .* starts behind attempt 1/);
    finds(
      wrongWith(eventsOf(behind("executor_interrupted", ended))),
      /failed of attempt 1 .* without its start/,
    );
    const third: Line = ["sandbox_job_started", attempt(3)];
    finds(
      wrongWith(eventsOf(behind("sandbox_job_completed", third))),
      /attempt 3 .* comes behind its success/,
    );
  });

  test("finds nodes that tell different histories, records or files", () => {
    const events = eventsOf(right);
    const other = eventsOf(behind("job_paused", ["log", { message: "more" }]));
    const both = (more: Partial<ToldRun>) =>
      wrongWithRun(
        "run_1",
        new Map([
          ["a", told(events)],
          ["b", told(events, more)],
        ]),
      );
    finds(both({ events: other }), /b has another history than a: .*job_resumed.* became .*"more"/);
    finds(
      both({ events: events.slice(0, -1) }),
      /b has another history than a: .*job_completed.* became nothing/,
    );
    finds(both({ streamed: other }), /the stream of b is not the history/);
    finds(both({ files: [] }), /its files are made on a and {2}on b/);
    finds(both({ status: "running" }), /it is completed on a and running on b/);
    finds(wrongWithRun("run_1", new Map()), /no node tells it/);
  });

  test("finds submissions that are lost, doubled, or nobody's", () => {
    assert.deepEqual(wrongWithList(["r1", "r2"], ["r2", "r1"]), []);
    finds(wrongWithList(["r1", "r2"], ["r1"]), /r2 was acknowledged and is not listed/);
    finds(wrongWithList(["r1"], ["r1", "r1"]), /r1 is listed twice/);
    finds(wrongWithList(["r1"], ["r1", "r2"]), /r2 is listed, and nobody was told of it/);
    finds(wrongWithList(["r1", "r1"], ["r1"]), /r1 was acknowledged for two submissions/);
  });
});
