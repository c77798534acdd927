// The stream of lists, of the real program: what changes, who may read it, and what a restart does to it.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { blocksOf } from "../support/event-stream.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { ask, assertProblem, call, createJob, ended, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";
const bearer = { authorization: `Bearer ${TOKEN}` };

let home: string;
let program: Program;
let gates: Gates;
before(async () => {
  home = await temporaryHome();
  [program, gates] = await Promise.all([startGatewayHere({ home }), makeGates()]);
});
after(async () => {
  await program.stop();
  await gates.remove();
  await rm(home, { recursive: true, force: true });
});

interface Told {
  readonly id: string;
  readonly event: string;
  readonly data: JsonObject;
}

/** A stream of lists; it ends with the scope of `await using`. */
async function open(query = "", headers: Readonly<Record<string, string>> = {}) {
  const over = new AbortController();
  const answer = await fetch(`${program.url}/api/v1/stream${query}`, { headers, signal: over.signal });
  const blocks = blocksOf(answer);
  const next = async (): Promise<Told | null> => {
    for (;;) {
      const { value, done } = await blocks.next();
      if (done === true) return null;
      const data = value.fields.get("data");
      if (data === undefined) continue;
      return {
        id: value.fields.get("id") ?? "",
        event: value.fields.get("event") ?? "",
        data: JSON.parse(data) as JsonObject,
      };
    }
  };
  return {
    answer,
    next,
    /** Reads up to the change that is wanted. */
    async until(isWanted: (data: JsonObject & { readonly changes: JsonObject }) => boolean): Promise<Told[]> {
      const seen: Told[] = [];
      for (let told = await next(); told !== null; told = await next()) {
        seen.push(told);
        if (told.event === "change" && isWanted(told.data as never)) return seen;
      }
      throw new Error(`The stream ended: ${JSON.stringify(seen)}`);
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await blocks.return(undefined).catch(() => {});
    },
  };
}

const question = (id: string) =>
  `printf '%s\\n' '${JSON.stringify({ type: "human_input_requested", payload: { request_id: id, prompt: "Ship it?" } })}' > "$SVC_EVENT_STREAM"; until [ -s "$SVC_HUMAN_RESPONSES" ]; do sleep 0.1; done`;

test("a run is told from its acceptance to its end as the list shows it, without what may be large", async () => {
  await using lists = await open("?topics=runs");
  assert.equal(lists.answer.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal((await lists.next())?.event, "reset");
  const gate = gates.pipe("told");
  const jobId = await createJob(program, graph("told", [executor("held", `cat ${gate}`)]));
  const runId = await startRun(program, jobId, { inputs: { topic: "bees" } });
  await lists.until(({ id, changes }) => id === runId && changes.status === "running");
  await gates.open(gate);
  const seen = await lists.until(({ id, changes }) => id === runId && changes.status === "completed");
  const { run } = await ended(program, runId);
  const last = seen.at(-1)?.data.changes as JsonObject;
  const { inputs, config_overrides: _, result, links, run_id: __, ...shown } = run;
  assert.deepEqual(last, { ...shown, updated_at: last.updated_at });
  assert.ok(inputs !== undefined && result !== undefined && links !== undefined);
});

test("a question is told with its run, and only to who follows questions", async () => {
  await using people = await open("?topics=human");
  assert.equal((await people.next())?.event, "reset");
  const jobId = await createJob(program, graph("asks", [executor("asker", question("ship"))]));
  const runId = await startRun(program, jobId);
  const asked = await people.next();
  assert.deepEqual(asked?.data, {
    topic: "human",
    id: "ship",
    changes: { run_id: runId, status: "pending" },
  });
  await call(program, "POST", `/runs/${runId}/human/ship/response`, { decision: "yes" });
  await people.until(({ id, changes }) => id === "ship" && changes.status === "answered");
});

test("services are told as they come and go", async () => {
  await using services = await open("?topics=services");
  await services.next();
  const gate = gates.pipe("service");
  const offered = { name: "page", port: 8099, checks: [] };
  const jobId = await createJob(
    program,
    graph("offers", [{ ...executor("server", `cat ${gate}`), services: [offered] } as never]),
  );
  await startRun(program, jobId);
  await services.until(({ changes }) => changes.status === "registered");
  await gates.open(gate);
  await services.until(({ changes }) => changes.status === "deregistered");
});

test("a schedule is told when it is made, changed and deleted", async () => {
  const jobId = await createJob(program, graph("due", [executor("quick", "true")]));
  await using lists = await open("?topics=schedules");
  assert.equal((await lists.next())?.event, "reset");
  const cron = { expressions: ["30 7 * * *"], timezone: "UTC" };
  const { schedule_id: id } = await call(program, "POST", "/schedules", { job_id: jobId, cron });
  const told = { topic: "schedules", id, changes: {} };
  assert.deepEqual((await lists.next())?.data, told);
  await call(program, "POST", `/schedules/${id}/pause`, {});
  assert.deepEqual((await lists.next())?.data, told);
  await ask(program, "DELETE", `/schedules/${id}`, { headers: { "if-match": "*" } });
  assert.deepEqual((await lists.next())?.data, told);
});

test("who comes back gets what has happened meanwhile and no reset; a deleted job resets the lists", async () => {
  const jobId = await createJob(program, graph("away", [executor("quick", "true")]));
  const first = await open("?topics=runs");
  const id = (await first.next())?.id ?? "";
  await first[Symbol.asyncDispose]();
  const runId = await startRun(program, jobId);
  await ended(program, runId);
  await using again = await open("?topics=runs", { "last-event-id": id });
  const seen = await again.until((data) => data.id === runId && data.changes.status === "completed");
  assert.ok(seen.every(({ event }) => event === "change"));
  await ask(program, "DELETE", `/jobs/${jobId}`, { headers: { "if-match": "*" } });
  for (;;) if ((await again.next())?.event === "reset") break;
});

test("an unknown topic is refused with the list of them; HEAD answers at once", async () => {
  const answer = await ask(program, "GET", "/stream?topics=runs,cats");
  assertProblem(answer, 400, "invalid_parameter");
  assert.match(JSON.stringify(answer.body), /must be topics, separated by commas: runs, human, dead-letters/);
  assert.equal((await fetch(`${program.url}/api/v1/stream`, { method: "HEAD" })).status, 200);
});

test("behind a restart an old id gets exactly one reset, and then what happens", async () => {
  const first = await open();
  const id = (await first.next())?.id ?? "";
  await first[Symbol.asyncDispose]();
  await program.stop();
  program = await startGatewayHere({ home });
  const jobId = await createJob(program, graph("later", [executor("quick", "true")]));
  await using again = await open("?topics=runs", { "last-event-id": id });
  assert.equal((await again.next())?.event, "reset");
  const runId = await startRun(program, jobId);
  const seen = await again.until((data) => data.id === runId && data.changes.status === "completed");
  assert.ok(seen.every(({ event }) => event === "change"));
});

test("with a token: guests of one run and pages of other sites get nothing, and a stream ends with its session", async () => {
  const jobId = await createJob(program, graph("shared", [executor("quick", "true")]));
  const runId = await startRun(program, jobId);
  await ended(program, runId);
  await program.stop();
  program = await startGatewayHere({ home, env: { SVC_API_TOKEN: TOKEN } });
  const { url } = program;
  assert.equal((await open()).answer.status, 401);
  const page = { origin: url, "sec-fetch-site": "same-origin", "content-type": "application/json" };
  const signIn = async (body: JsonObject) => {
    const answer = await fetch(`${url}/console/session`, {
      method: "POST",
      headers: page,
      body: JSON.stringify(body),
    });
    const { key } = (await answer.json()) as { readonly key: string };
    const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
    return { cookie, "x-console-key": key };
  };
  const share = await fetch(`${url}/api/v1/sessions`, {
    method: "POST",
    headers: { ...bearer, "content-type": "application/json", "idempotency-key": "share" },
    body: JSON.stringify({ kind: "share", run_id: runId }),
  });
  const { path } = (await share.json()) as { readonly path: string };
  const guest = await signIn({ share: path.split("#share=")[1] ?? "" });
  assert.equal((await open("", guest)).answer.status, 403);
  const signed = await signIn({ token: TOKEN });
  const foreign = { ...signed, origin: "https://elsewhere.example", "sec-fetch-site": "cross-site" };
  assert.equal((await open("", foreign)).answer.status, 403);
  assert.equal((await open("", { cookie: signed.cookie })).answer.status, 401);
  await using lists = await open("", signed);
  assert.equal((await lists.next())?.event, "reset");
  await fetch(`${url}/console/session`, { method: "DELETE", headers: { ...page, ...signed } });
  while ((await lists.next()) !== null);
  assert.equal((await open("", signed)).answer.status, 401);
});
