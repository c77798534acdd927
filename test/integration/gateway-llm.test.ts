// Workers that ask a model: what they find, what their run's history says, their budgets, and who else may use their key.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { ask, assertProblem, call, createJob, follow } from "../support/gateway-api.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { completion, sendJson, startUpstream } from "../support/llm.ts";
import { noSandboxes } from "../support/sandboxes.ts";

const program = await startGatewayHere();
after(() => program.stop());

/** Asks as often as its input says, with the model and the key that it is given; its result has the statuses. */
const WORKER = `
const { SVC_LLM_API_BASE: base, SVC_LLM_API_KEY: key, SVC_LLM_MODEL: model, OPENAI_BASE_URL, OPENAI_API_KEY } = process.env;
const { times = 1, asked = model } = JSON.parse(require("node:fs").readFileSync(process.env.SVC_INPUT_FILE, "utf8"));
const answers = [];
(async () => {
  for (let n = 0; n < times; n++) {
    const answer = await fetch(base + "/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer " + key },
      body: JSON.stringify({ model: asked, messages: [{ role: "user", content: "Is it raining?" }] }),
    });
    const body = await answer.json();
    answers.push([answer.status, body.error?.code ?? body.choices[0].message.content]);
  }
  const other = await fetch(new URL("/api/v1/jobs", base)).then((answer) => answer.status);
  console.log("the key is " + key);
  const isSame = OPENAI_BASE_URL === base && OPENAI_API_KEY === key;
  console.log(JSON.stringify({ complete_step: { answers, base, other, isSame, encoded: [...key].join(" ") } }));
})();
`;

function manifest(llm: JsonObject, config: JsonObject = {}, input: JsonObject = {}): JsonObject {
  return {
    manifest_version: "1.0",
    graph_id: "asks",
    entrypoints: ["worker"],
    initial_inputs: { worker: [input] },
    nodes: [
      {
        node_id: "worker",
        agent_type: "executor",
        llm,
        config: { command: ["{node}", "-e", WORKER], ...config },
      },
    ],
  };
}

interface Worked {
  readonly answers: readonly (readonly [number, string])[];
  readonly base: string;
  readonly other: number;
  readonly isSame: boolean;
  readonly encoded: string;
}

/** Runs it to its end. */
async function work(given: JsonObject) {
  const jobId = await createJob(program, given);
  const run = await call(program, "POST", `/jobs/${jobId}/runs`, {}, { prefer: "wait=60" });
  const runId = String(run.run_id);
  const events = await Array.fromAsync(follow(program, runId));
  assert.equal(run.status, "completed", JSON.stringify(events.at(-1)));
  const { worker } = (run.result as { readonly outputs: { readonly worker?: { readonly result: unknown } } })
    .outputs;
  assert.ok(worker !== undefined, JSON.stringify(run.result));
  return { runId, events, worked: worker.result as Worked };
}

test("a worker asks with a key of its run, which its history does not show; each call is in it, without what was said", async () => {
  await using upstream = await startUpstream(sendJson(completion("It pours.")));
  const llm = { model: "weather", endpoint: upstream.url, openai_env: true };
  const { runId, events, worked } = await work(manifest(llm));
  assert.deepEqual(worked.answers, [[200, "It pours."]]);
  assert.equal(worked.isSame, true);
  assert.equal(worked.other, 404, "the door leads to models only");
  assert.equal(upstream.requests[0]?.headers.authorization, undefined);
  const calls = events.filter(({ type }) => type === "llm_call");
  assert.equal(calls.length, 1);
  const { duration_ms, first_token_ms, ...payload } = calls[0]!.payload;
  assert.deepEqual(payload, {
    attempt: 1,
    model: "weather",
    path: "chat/completions",
    status: 200,
    tokens: { input: 7, output: 3 },
    estimated: false,
  });
  assert.ok(Number(duration_ms) >= 0 && Number(first_token_ms) >= 0);
  const key = worked.encoded.replaceAll(" ", "");
  assert.match(key, /^trl_/);
  const text = JSON.stringify(events);
  assert.ok(!text.includes(key) && text.includes("the key is [redacted]"));
  assert.ok(!text.includes("raining"));
  const summary = await call(program, "GET", `/runs/${runId}/observability-summary`);
  assert.deepEqual(summary.tokens, { input: 7, output: 3, total: 10 });
  // The worker has ended.
  const late = await fetch(`${worked.base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "weather", messages: [] }),
  });
  assert.equal(late.status, 401);
  assert.equal(((await late.json()) as { error: { code: string } }).error.code, "run_key_invalid");
  const stranger = await fetch(`${worked.base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer anything" },
    body: JSON.stringify({ model: "weather", messages: [] }),
  });
  assert.equal(stranger.status, 401);
  assert.equal(upstream.requests.length, 1);
});

test("a budget of requests ends, and one of tokens; another model than the declared one is refused", async () => {
  await using upstream = await startUpstream(sendJson(completion("Yes.")));
  const endpoint = upstream.url;
  const requests = await work(manifest({ model: "m", endpoint, budget: { requests: 2 } }, {}, { times: 3 }));
  assert.deepEqual(requests.worked.answers, [
    [200, "Yes."],
    [200, "Yes."],
    [429, "budget_exceeded"],
  ]);
  // 10 tokens each: the third finds 20 used.
  const tokens = await work(manifest({ model: "m", endpoint, budget: { tokens: 15 } }, {}, { times: 3 }));
  assert.deepEqual(tokens.worked.answers, [
    [200, "Yes."],
    [200, "Yes."],
    [429, "budget_exceeded"],
  ]);
  assert.equal(upstream.requests.length, 4);
  const other = await work(manifest({ model: "m", endpoint }, {}, { asked: "n" }));
  assert.deepEqual(other.worked.answers, [[403, "model_not_declared"]]);
  assert.equal(upstream.requests.length, 4);
});

test("in a sandbox the model is reached without a line in the policy, and the gateway is not", {
  skip: noSandboxes,
}, async () => {
  await using upstream = await startUpstream(sendJson(completion("Yes.")));
  const { worked, events } = await work(
    manifest({ model: "m", endpoint: upstream.url }, { runner_module: "Sandbox" }),
  );
  assert.deepEqual(worked.answers, [[200, "Yes."]]);
  assert.equal(worked.other, 404);
  assert.equal(events.filter(({ type }) => type === "llm_call").length, 1);
});

test("a run whose model is not served is refused before it is accepted, with what to do", async () => {
  const jobId = await createJob(program, manifest({ model: "qwen" }));
  const refused = assertProblem(
    await ask(program, "POST", `/jobs/${jobId}/runs`),
    409,
    "requirements_not_met",
  );
  assert.match(String(refused.detail), /"qwen".*troupe models install qwen and troupe models serve qwen/);
  // One that may do without it is started, and told when it asks.
  const { worked, events } = await work(manifest({ model: "qwen", required: false }));
  assert.deepEqual(worked.answers, [[404, "model_not_found"]]);
  assert.equal(events.find(({ type }) => type === "llm_call")?.payload.status, 404);
});

test("a manifest's model is every command's that names none, and its mistakes are told", async () => {
  const given = manifest({ model: "m", endpoint: "ftp://x", budget: { tokens: 0 } });
  const upload = await createJob(program, given).catch((error: Error) => error.message);
  assert.match(upload, /nodes\[0\]\.llm\.endpoint|\/nodes\/0\/llm\/endpoint/);
  assert.match(upload, /budget/);
});
