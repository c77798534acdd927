import assert from "node:assert/strict";
import { test } from "node:test";
import { TroupeUnreachable } from "../../sdk/src/index.ts";
import { testCall } from "../../test/support/test-call.ts";
import type { JsonObject } from "../engine/json.ts";
import { readEvent } from "./event-text.ts";
import { gatewayRun } from "./named-run.ts";
import type { ServerCall } from "./session.ts";
import { plainPaint, type Terminal } from "./terminal.ts";
import { awaitRun, watch } from "./watching.ts";

const event = (id: number, type: string, agentId: string | null, payload: JsonObject = {}) =>
  readEvent(id, { id, type, timestamp: "2026-01-01T00:00:00.000Z", agent_id: agentId, payload });

/** A screen of a few rows that keeps what it was last shown. */
function screen(columns: number, rows: number) {
  const shown = { lines: [] as readonly string[] };
  const terminal: Terminal = {
    isScreen: true,
    paint: plainPaint,
    print: () => assert.fail("a screen is drawn, not printed on"),
    note: () => {},
    size: () => ({ columns, rows }),
    redraw: (lines) => {
      shown.lines = lines;
    },
    settle: () => {},
  };
  return { shown, terminal };
}

test("on a screen the last footer stays below the picture, and both fit", async () => {
  const { shown, terminal } = screen(40, 6);
  const address = `Dashboard http://127.0.0.1:61000/${"x".repeat(60)}`;
  let footer: string | null = null;
  async function* events() {
    yield event(1, "job_running", null);
    for (let n = 0; n < 10; n++) yield event(2 + n, "agent_started", `agent-${n}`);
    footer = address;
    yield event(12, "job_completed", null);
  }
  await watch({ id: "run_1", events: events(), footer: () => footer }, terminal);
  assert.match(shown.lines[0] ?? "", /^run_1 {2}completed/);
  assert.equal(shown.lines.slice(-3).join(""), address);
  assert.ok(shown.lines.length < 6);
  assert.ok(shown.lines.every((line) => line.length <= 40));
});

test("without a footer the picture has the whole screen", async () => {
  const { shown, terminal } = screen(80, 24);
  async function* events() {
    yield event(1, "job_completed", null);
  }
  await watch({ id: "run_1", events: events() }, terminal);
  assert.equal(shown.lines.length, 1);
});

function waitingFor(error: Error) {
  const client = { baseUrl: "http://h/api/v1", runs: { wait: () => Promise.reject(error) } };
  const interrupt = new AbortController().signal;
  const call = { ...testCall(), client, interrupt, isOwnServer: false } as unknown as ServerCall;
  return awaitRun(call, gatewayRun(call, "run_1"));
}

test("a gateway that stays unreachable while a run is waited for: the error tells how to follow the run later", async () => {
  await assert.rejects(waitingFor(new TroupeUnreachable("Nobody answers.")), {
    name: "CommandFailed",
    message: /^Nobody answers\.\nThe run continues when the server is back.*: troupe events run_1 --follow$/,
  });
});

test("the error for an answer of another kind of server already tells what to check", async () => {
  const stranger = new TroupeUnreachable("Check the URL.", { status: 502 });
  await assert.rejects(waitingFor(stranger), stranger);
});
