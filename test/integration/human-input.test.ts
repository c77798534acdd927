// Workers that ask people, for real: the bundle of docs/workers.md, long-lived workers, and a runtime that is killed
// while they wait. Answers go in through the API, as a person's would.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../src/engine/json.ts";
import { Random } from "../simulation/random.ts";
import { executor, graph } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { sized } from "../support/long.ts";
import { type Program, startProgram, temporaryHome } from "../support/program.ts";
import {
  call,
  follow,
  historyOf,
  jobDetail,
  request,
  type SeenEvent,
  submitFolder,
} from "../support/runtime-api.ts";

const workersPage = fileURLToPath(new URL("../../docs/workers.md", import.meta.url));
const KILLS = sized(2, 20);
const REQUESTED = "human_input_requested";

/** Waits for the n-th event of a job that fits. */
async function seen(
  program: Program,
  jobId: string,
  fits: (event: SeenEvent) => boolean,
  times = 1,
): Promise<SeenEvent> {
  let count = 0;
  for await (const event of follow(program, jobId)) {
    if (fits(event) && ++count === times) return event;
  }
  throw new Error(`${jobId} ended before it was seen`);
}

const isQuestion = ({ type }: SeenEvent) => type === REQUESTED;

async function answer(program: Program, runId: string, requestId: string, body: JsonObject): Promise<void> {
  await call(program, "POST", `/runs/${runId}/human/${requestId}/response`, body);
}

/** The result of a job that has to complete, once it has. */
async function resultOf(program: Program, jobId: string): Promise<JsonObject> {
  await historyOf(program, jobId);
  const { result, status } = (await jobDetail(program, jobId)).job;
  assert.equal(status, "completed");
  return result ?? {};
}

const runOf = async (program: Program, jobId: string) => (await jobDetail(program, jobId)).job.run_id;

/** A command in Python that has `ask(request_id)` and `print`. */
const python = (script: string) => [
  "python3",
  "-uc",
  `import json, os, sys, time
def question(**payload):
    with open(os.environ["SVC_EVENT_STREAM"], "w") as stream:
        stream.write(json.dumps({"type": "human_input_requested", "payload": payload}) + "\\n")
def answers(count):
    while True:
        with open(os.environ["SVC_HUMAN_RESPONSES"]) as file:
            lines = file.read().split("\\n")[:-1]
        if len(lines) >= count: return [json.loads(line) for line in lines]
        time.sleep(0.05)
${script}`,
];

describe("a person who is asked", () => {
  it("answers the bundle of docs/workers.md, in shell and in Python", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "troupe-asking-"));
    t.after(() => rm(folder, { recursive: true }));
    const text = await readFile(workersPage, "utf8");
    const section = text.slice(text.indexOf("## Asking a person"));
    for (const file of ["manifest.json", "payloads/ship.sh", "payloads/name.py"]) {
      const block = new RegExp(`\`${file}\`\\n\\n\`\`\`\\w+\\n(.*?)\`\`\``, "s").exec(section)?.[1];
      assert.ok(block !== undefined, `docs/workers.md shows ${file}`);
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), block);
    }
    await using program = await startRuntimeHere();
    const jobId = await submitFolder(program, folder);
    const runId = await runOf(program, jobId);
    await seen(program, jobId, isQuestion, 2);
    const { agents } = await jobDetail(program, jobId);
    assert.deepEqual(
      agents.filter(({ status }) => status === "waiting").map(({ agent_id }) => agent_id),
      ["ship", "name"],
    );
    await answer(program, runId, "name", { decision: "troupe" });
    await answer(program, runId, "ship", { decision: "yes", comment: "at last" });
    const result = await resultOf(program, jobId);
    const steps = (result.messages as unknown as readonly JsonObject[]).map((message) => message.result);
    assert.deepEqual(
      steps.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
      [{ name: "troupe" }, { shipped: true }],
    );
  });

  it("answers a command that has ended, which is started again with the answer as its message", async () => {
    const script = `if grep -q '"type":"human_response"' "$SVC_MESSAGE_FILE"; then
        printf '{"complete_run": %s}\\n' "$(cat "$SVC_BODY_FILE")"
      else
        printf '{"events": [{"type": "human_input_requested", "payload": {"prompt": "Ship it?"}}]}\\n'
      fi`;
    await using program = await startRuntimeHere();
    const job = await call(program, "POST", "/jobs", graph("later", [executor("worker", script)]));
    const jobId = String(job.id);
    const asked = await seen(program, jobId, isQuestion);
    const requestId = String(asked.payload.request_id);
    assert.equal(requestId, `req_${asked.id}`);
    await answer(program, await runOf(program, jobId), requestId, { decision: "yes", data: { at: "noon" } });
    const result = await resultOf(program, jobId);
    assert.deepEqual([result.decision, result.data, result.status], ["yes", { at: "noon" }, "answered"]);
  });

  it("answers a long-lived worker on its stdin and in its file", async () => {
    const worker = python(`question(request_id="go", prompt="Go?")
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "human_response": break
print(json.dumps({"complete_run": {"message": message["type"], "body": message["body"], "file": answers(1)}}))`);
    const node = { ...executor("worker", worker), type: "stream" };
    await using program = await startRuntimeHere();
    const jobId = String((await call(program, "POST", "/jobs", graph("talk", [node]))).id);
    await seen(program, jobId, isQuestion);
    await answer(program, await runOf(program, jobId), "go", { decision: "yes" });
    const result = await resultOf(program, jobId);
    assert.equal(result.message, "human_response");
    assert.equal((result.body as JsonObject).decision, "yes");
    assert.deepEqual(result.file, [result.body]);
  });
});

describe("a runtime that is killed while workers wait for people", () => {
  it("hands over what was answered before the kill and what is answered after it, each once", async () => {
    const worker = python(`question(request_id="first", prompt="First?")
question(prompt="Second?")
question(request_id="third", prompt="Third?", timeout_seconds=3600)
print(json.dumps({"complete_step": answers(3)}))`);
    await using kept = await keptHome();
    const { home } = kept;
    await using first = await startProgram({ home });
    const jobId = String(
      (await call(first, "POST", "/jobs", graph("killed", [executor("worker", worker)]))).id,
    );
    const runId = await runOf(first, jobId);
    await seen(first, jobId, isQuestion, 3);
    await answer(first, runId, "first", { decision: "one" });
    await first.kill();

    await using program = await startRuntimeHere({ home });
    const again = await seen(program, jobId, ({ payload }) => payload.repeated === true, 3);
    assert.equal(again.payload.request_id, "third");
    const questions = (await eventsOf(program, jobId)).filter(isQuestion);
    const names = questions.map(({ payload }) => payload.request_id);
    assert.deepEqual(names.slice(3), names.slice(0, 3), "nobody is asked anew");
    await answer(program, runId, String(names[1]), { decision: "two" });
    await answer(program, runId, "third", { decision: "three" });
    const result = await resultOf(program, jobId);
    const outputs = result.outputs as unknown as { worker: { result: readonly JsonObject[] } };
    assert.deepEqual(
      outputs.worker.result.map(({ request_id, decision }) => [request_id, decision]),
      [
        ["first", "one"],
        [names[1], "two"],
        ["third", "three"],
      ],
    );
  });

  it("takes the default action when the time was over meanwhile", async () => {
    const worker = python(`question(request_id="go", prompt="Go?", timeout_seconds=1, default_action="no")
print(json.dumps({"complete_run": answers(1)[0]}))`);
    await using kept = await keptHome();
    const { home } = kept;
    await using first = await startProgram({ home });
    const jobId = String(
      (await call(first, "POST", "/jobs", graph("late", [executor("worker", worker)]))).id,
    );
    await seen(first, jobId, isQuestion);
    await first.kill();
    await using program = await startRuntimeHere({ home });
    const history = await historyOf(program, jobId);
    assert.equal(history.filter(({ type }) => type === "human_input_timed_out").length, 1);
    const result = await resultOf(program, jobId);
    assert.deepEqual([result.status, result.decision, result.principal], ["timed_out", "no", null]);
  });

  it("keeps every answer that it acknowledged, through kills at random moments", async () => {
    // The same moments in every run; HUMAN_SEED=$RANDOM for others.
    const seed = Number(process.env.HUMAN_SEED ?? 1);
    const random = new Random(seed);
    const worker = `for n in 0 1 2; do
      printf '{"type":"human_input_requested","payload":{"request_id":"q%s","prompt":"?"}}\\n' $n >> "$SVC_EVENT_STREAM"
      while ! grep -q '"q'$n'"' "$SVC_HUMAN_RESPONSES"; do sleep 0.1; done
    done
    printf '{"complete_step": [%s]}\\n' "$(paste -sd, "$SVC_HUMAN_RESPONSES")"`;
    await using kept = await keptHome();
    const start = () => startProgram({ home: kept.home, env: { SVC_EXECUTOR_MAX_CONCURRENCY: "20" } });
    let program = await start();
    await using _last = { [Symbol.asyncDispose]: async () => void (await program.stop()) };
    const jobIds: string[] = [];
    for (let n = 0; n < 6; n++) {
      const job = await call(program, "POST", "/jobs", graph("loyal", [executor("worker", worker)]));
      jobIds.push(String(job.id));
    }
    const runs = new Map<string, string>();
    for (const jobId of jobIds) runs.set(jobId, await runOf(program, jobId));
    const acknowledged = new Map<string, string>();
    for (let kills = 0; kills < KILLS; kills++) {
      const answering = answerAll(program, runs, acknowledged, random);
      // A moment from the seed, not a wait for anything: whatever is under way is cut off somewhere.
      await delay(random.between(100, 800));
      await program.kill();
      await answering;
      program = await start();
    }
    await answerAll(program, runs, acknowledged, random);
    for (const jobId of jobIds) {
      const result = await resultOf(program, jobId);
      const outputs = result.outputs as unknown as { worker: { result: readonly JsonObject[] } };
      const read = outputs.worker.result;
      assert.deepEqual(read.map(({ request_id }) => request_id).sort(), ["q0", "q1", "q2"]);
      for (const { request_id: requestId, decision } of read) {
        const told = acknowledged.get(`${jobId} ${requestId}`);
        assert.ok(
          told === undefined || told === decision,
          `${jobId} ${requestId}: ${told} is not ${decision}`,
        );
      }
    }
  });
});

/** A home that outlives the programs in it, and is removed after the last of them has stopped. */
async function keptHome(): Promise<{ readonly home: string } & AsyncDisposable> {
  const home = await temporaryHome();
  return { home, [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }) };
}

async function eventsOf(program: Program, jobId: string): Promise<readonly SeenEvent[]> {
  return (await call(program, "GET", `/jobs/${jobId}/events`)).data as unknown as readonly SeenEvent[];
}

/** Answers each question as it is asked, until all runs have ended or the program is gone. */
async function answerAll(
  program: Program,
  runs: ReadonlyMap<string, string>,
  acknowledged: Map<string, string>,
  random: Random,
): Promise<void> {
  const answerRun = async (jobId: string, runId: string) => {
    for await (const { type, payload } of follow(program, jobId)) {
      // After a kill it is asked again what was answered.
      const name = `${jobId} ${String(payload.request_id)}`;
      if (type !== REQUESTED || acknowledged.has(name)) continue;
      const path = `/runs/${runId}/human/${String(payload.request_id)}/response`;
      const decision = `d${random.below(1_000_000)}`;
      const given = await request(program, "POST", path, { decision });
      // An answer that was taken before a kill, and not acknowledged, is the one that counts.
      if (given.status < 400) acknowledged.set(name, decision);
      else assert.equal(given.status, 409, JSON.stringify(given.body));
    }
  };
  const isKilled = (error: unknown) => error instanceof TypeError;
  await Promise.all(
    Array.from(runs, async ([jobId, runId]) => {
      await answerRun(jobId, runId).catch((error: unknown) => {
        if (!isKilled(error)) throw error;
      });
    }),
  );
}
