// The OpenAI protocol as its own client speaks it, with servers behind it that do well and that fail.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import OpenAI, { APIError } from "openai";
import { TOKEN } from "../../../test/support/api.ts";
import {
  completion,
  DONE,
  hurriedClock,
  part,
  sendEvents,
  sendJson,
  startLlmGateway,
  startUpstream,
  type UpstreamRequest,
  USAGE_EVENT,
} from "../../../test/support/llm.ts";
import { until } from "../../../test/support/until.ts";
import { LlmError } from "../../models/serving/llm-error.ts";

const KEY = "sk-upstream-secret";
const endpoint = (baseUrl: string, apiKey: string | null = KEY) =>
  ({ kind: "endpoint", modelId: "org/m 1", baseUrl, model: "upstream-model", apiKey }) as const;
const question: Pick<OpenAI.ChatCompletionCreateParams, "model" | "messages"> = {
  model: "org/m 1",
  messages: [{ role: "user", content: "Is it raining?" }],
};

async function refusal(asked: Promise<unknown>): Promise<APIError> {
  try {
    await asked;
  } catch (error) {
    assert.ok(error instanceof APIError, String(error));
    return error;
  }
  throw new Error("It was answered.");
}

test("an answer is passed on as it is, and the request with the model's name and key over there", async () => {
  await using upstream = await startUpstream(sendJson(completion("Yes.")));
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  const answer = await gateway.client.chat.completions.create({ ...question, temperature: 0.25, seed: 7 });
  assert.deepEqual(JSON.parse(JSON.stringify(answer)), completion("Yes."));
  const [request] = upstream.requests;
  assert.equal(request?.path, "/v1/chat/completions");
  assert.equal(request?.headers.authorization, `Bearer ${KEY}`);
  assert.deepEqual(request?.body, { ...question, temperature: 0.25, seed: 7, model: "upstream-model" });
  const [call] = gateway.calls;
  assert.equal(gateway.calls.length, 1);
  assert.deepEqual(
    { status: call?.status, code: call?.code, usage: call?.usage, modelId: call?.modelId },
    { status: 200, code: null, usage: { input: 7, output: 3, isEstimated: false }, modelId: "org/m 1" },
  );
});

test("embeddings are passed on, and the list has what is served", async () => {
  const embedding = {
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: [0.5, -1] }],
    model: "e",
  };
  await using upstream = await startUpstream(
    sendJson({ ...embedding, usage: { prompt_tokens: 4, total_tokens: 4 } }),
  );
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  const made = await gateway.client.embeddings.create({
    model: "org/m 1",
    input: "rain",
    encoding_format: "float",
  });
  assert.deepEqual(made.data[0]?.embedding, [0.5, -1]);
  assert.deepEqual(gateway.calls[0]?.usage, { input: 4, output: 0, isEstimated: false });
  assert.deepEqual(await Array.fromAsync(await gateway.client.models.list(), ({ id }) => id), ["org/m 1"]);
  assert.equal((await gateway.client.models.retrieve("org/m 1")).id, "org/m 1");
});

test("a stream is passed on part by part, while the answer is being made", async () => {
  const step = Promise.withResolvers<void>();
  await using upstream = await startUpstream(async ({ answer }) => {
    answer.writeHead(200, { "content-type": "text/event-stream" });
    answer.write(part("Ye"));
    await step.promise;
    // In two pieces, in the middle of a letter of two bytes.
    const last = Buffer.from(part("ß", {}, "stop") + USAGE_EVENT + DONE);
    const middle = last.indexOf(0xc3) + 1;
    answer.write(last.subarray(0, middle));
    answer.end(last.subarray(middle));
  });
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  const stream = await gateway.client.chat.completions.create({ ...question, stream: true });
  const said: string[] = [];
  for await (const chunk of stream) {
    said.push(chunk.choices[0]?.delta.content ?? "?");
    step.resolve();
  }
  assert.deepEqual(said, ["Ye", "ß"]);
  assert.deepEqual(upstream.requests[0]?.body.stream_options, { include_usage: true });
  assert.deepEqual(gateway.calls[0]?.usage, { input: 5, output: 2, isEstimated: false });
  assert.ok(gateway.calls[0]?.firstTokenMs !== null);
});

test("a client that has asked for the usage gets it, and bytes are what the server sent", async () => {
  const sent = `: ping\n\n${part("A", { usage: null })}${USAGE_EVENT}${DONE}`;
  await using upstream = await startUpstream(sendEvents(sent));
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  const body = { ...question, stream: true, stream_options: { include_usage: true } };
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${gateway.url}/chat/completions`, {
    method: "POST",
    body: JSON.stringify(body),
    headers,
  });
  assert.equal(answer.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(await answer.text(), sent);
});

test("tokens that no server tells are estimated, and said to be", async () => {
  await using upstream = await startUpstream(
    sendJson(completion("It is.", { usage: null })),
    sendEvents(part("a"), part("b"), part("", {}, "stop")),
  );
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  await gateway.client.chat.completions.create(question);
  const stream = await gateway.client.chat.completions.create({ ...question, stream: true });
  assert.equal((await Array.fromAsync(stream)).length, 3);
  assert.deepEqual(
    gateway.calls.map(({ usage }) => usage.isEstimated && usage.input > 0 && usage.output > 0),
    [true, true],
  );
});

test("a request that names no served model is told how to serve one", async () => {
  await using gateway = await startLlmGateway({ models: [] });
  const unknown = await refusal(gateway.client.chat.completions.create(question));
  assert.equal(unknown.status, 404);
  assert.equal(unknown.code, "model_not_found");
  assert.match(unknown.message, /troupe models serve org\/m 1/);
  const none = await refusal(gateway.client.chat.completions.create({ messages: [] } as never));
  assert.deepEqual([none.status, none.code, none.param], [400, "model_missing", "model"]);
});

test("what the gateway itself refuses has the protocol's shape", async () => {
  await using gateway = await startLlmGateway({ models: [], conventions: { apiTokens: [TOKEN] } });
  const wrong = await refusal(gateway.client.chat.completions.create(question));
  assert.deepEqual([wrong.status, wrong.code, wrong.type], [401, "unauthorized", "authentication_error"]);
  const right = new OpenAI({ baseURL: gateway.url, apiKey: TOKEN, maxRetries: 0 });
  assert.equal((await refusal(right.chat.completions.create(question))).code, "model_not_found");
  assert.equal((await refusal(right.get("/nothing"))).code, "not_found");
});

test("a busy server is asked again after the time that it names", async () => {
  const waits: number[] = [];
  await using upstream = await startUpstream(
    sendJson({ error: { message: "Slow down" } }, 429, { "retry-after": "3" }),
    sendJson({ error: "overloaded" }, 503, { "retry-after-ms": "40" }),
    sendJson(completion("Now.")),
  );
  await using gateway = await startLlmGateway({
    models: [endpoint(upstream.url)],
    clock: hurriedClock(waits),
  });
  const answer = await gateway.client.chat.completions.create(question);
  assert.equal(answer.choices[0]?.message.content, "Now.");
  assert.deepEqual(waits, [3_000, 1_000]);
  assert.equal(gateway.calls.length, 1);
});

test("a server that stays busy, asks for a long wait or for none is passed on as it says", async () => {
  const slow = sendJson({ error: { message: "Quota of the day", code: "insufficient_quota" } }, 429, {
    "retry-after": "45",
  });
  const broken = sendJson({ error: { message: "CUDA error" } }, 500);
  const final = sendJson({ error: { message: "No more" } }, 503, { "x-should-retry": "false" });
  await using upstream = await startUpstream(slow, broken, broken, broken, final);
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)], clock: hurriedClock() });
  const long = await refusal(gateway.client.chat.completions.create(question));
  assert.deepEqual(
    [long.status, long.code, long.headers?.get("retry-after")],
    [429, "insufficient_quota", "45"],
  );
  assert.equal(upstream.requests.length, 1);
  const failed = await refusal(gateway.client.chat.completions.create(question));
  assert.equal(failed.status, 502);
  assert.match(failed.message, /org\/m 1.* says: CUDA error/);
  assert.equal(upstream.requests.length, 4);
  assert.equal((await refusal(gateway.client.chat.completions.create(question))).status, 503);
  assert.equal(upstream.requests.length, 5);
  assert.deepEqual(
    gateway.calls.map(({ status }) => status),
    [429, 502, 503],
  );
});

test("a mistake of the request is the client's, and is not sent again", async () => {
  const mistake = { message: "max_tokens is too large", type: "invalid_request_error", param: "max_tokens" };
  await using upstream = await startUpstream(sendJson({ error: mistake }, 400));
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  const refused = await refusal(gateway.client.chat.completions.create(question));
  assert.deepEqual(
    [refused.status, refused.param, refused.type],
    [400, "max_tokens", "invalid_request_error"],
  );
  assert.equal(upstream.requests.length, 1);
});

test("a registered key that the server refuses is no fault of the client, and is shown to nobody", async () => {
  await using upstream = await startUpstream(
    sendJson({ error: { message: `Incorrect API key provided: ${KEY}` } }, 401),
    sendJson({ error: { message: `No access with ${KEY} to it` } }, 404),
  );
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  const refused = await refusal(gateway.client.chat.completions.create(question));
  assert.deepEqual([refused.status, refused.code], [502, "upstream_unauthorized"]);
  const other = await refusal(gateway.client.chat.completions.create(question));
  for (const { message } of [refused, other]) assert.ok(!message.includes(KEY), message);
});

test("a server that nobody reaches, or that breaks off before its first byte, is tried again, then told", async () => {
  let port = "";
  {
    await using gone = await startUpstream();
    port = gone.url;
  }
  const cut = ({ answer }: UpstreamRequest) => void answer.destroy();
  await using upstream = await startUpstream(cut, sendJson(completion("Yes.")));
  const other = { ...endpoint(port), modelId: "gone" };
  await using gateway = await startLlmGateway({
    models: [endpoint(upstream.url), other],
    clock: hurriedClock(),
  });
  assert.equal((await gateway.client.chat.completions.create(question)).id, "c1");
  const refused = await refusal(gateway.client.chat.completions.create({ ...question, model: "gone" }));
  assert.deepEqual([refused.status, refused.code], [502, "upstream_unreachable"]);
  assert.match(refused.message, /ECONNREFUSED/);
});

test("no byte in time is told as such, and asked once", async () => {
  await using upstream = await startUpstream(() => {});
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)], silenceMs: 50 });
  const refused = await refusal(gateway.client.chat.completions.create(question));
  assert.deepEqual([refused.status, refused.code], [504, "upstream_timeout"]);
  assert.equal(upstream.requests.length, 1);
});

test("what is no answer of the protocol is told as such", async () => {
  await using upstream = await startUpstream(
    ({ answer }) => void answer.end("<html>"),
    sendJson({ error: { message: "Out of memory" } }),
    sendJson(completion("whole")),
    sendJson({}, 302, { location: "http://127.0.0.1:1/" }),
  );
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  const html = await refusal(gateway.client.chat.completions.create(question));
  assert.deepEqual([html.status, html.code], [502, "upstream_invalid_response"]);
  assert.match((await refusal(gateway.client.chat.completions.create(question))).message, /Out of memory/);
  const whole = await refusal(gateway.client.chat.completions.create({ ...question, stream: true }));
  assert.equal(whole.code, "upstream_invalid_response");
  const moved = await refusal(gateway.client.chat.completions.create(question));
  assert.equal(moved.code, "upstream_invalid_response");
  assert.equal(upstream.requests.length, 4);
});

for (const [what, events, code] of [
  ["breaks off", [part("Ye")], "upstream_cut"],
  ["is no JSON", [part("Ye"), 'data: {"choices": [\n\n'], "upstream_invalid_response"],
  ["says that it failed", [part("Ye"), 'data: {"error": {"message": "CUDA error"}}\n\n'], "upstream_error"],
] as const) {
  test(`a stream that ${what} ends with an error, behind what had come, and is not repeated`, async () => {
    await using upstream = await startUpstream(sendEvents(...events));
    await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
    const stream = await gateway.client.chat.completions.create({ ...question, stream: true });
    const said: unknown[] = [];
    const failed = await refusal(
      (async () => {
        for await (const chunk of stream) said.push(chunk.choices[0]?.delta.content);
      })(),
    );
    assert.deepEqual(said, ["Ye"]);
    assert.equal(failed.code, code);
    assert.equal(upstream.requests.length, 1);
    assert.deepEqual(
      gateway.calls.map((call) => [call.status, call.code]),
      [[502, code]],
    );
  });
}

test("a connection that is cut in the middle of an answer is told, and the answer not passed on as whole", async () => {
  await using upstream = await startUpstream(({ answer }) => {
    answer.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
    answer.write('{"choices": [', () => answer.destroy());
  });
  await using gateway = await startLlmGateway({ models: [endpoint(upstream.url)] });
  assert.equal((await refusal(gateway.client.chat.completions.create(question))).code, "upstream_cut");
});

test("a client that leaves cancels its request, while it waits and in the middle of a stream", async () => {
  const closed: Promise<unknown>[] = [];
  const open = ({ answer }: UpstreamRequest) => void closed.push(once(answer, "close"));
  await using upstream = await startUpstream(open, (request) => {
    open(request);
    request.answer.writeHead(200, { "content-type": "text/event-stream" }).write(part("Ye"));
  });
  await using gateway = await startLlmGateway({
    models: [endpoint(upstream.url)],
    settings: { concurrency: 1 },
  });
  const leaving = new AbortController();
  const waiting = refusal(gateway.client.chat.completions.create(question, { signal: leaving.signal }));
  await until("it is asked", () => upstream.requests.length === 1);
  leaving.abort();
  await waiting;
  await closed[0];
  const stream = await gateway.client.chat.completions.create({ ...question, stream: true });
  for await (const _chunk of stream) break;
  await closed[1];
  await until("both are counted", () => gateway.calls.length === 2);
  assert.deepEqual(
    gateway.calls.map(({ status }) => status),
    [499, 499],
  );
  // Its turn is free again.
  assert.equal(gateway.servers.heldOf("org/m 1")?.queue.running, 0);
});

test("requests beyond the concurrency wait, and beyond the queue are told when to come again", async () => {
  const held: UpstreamRequest[] = [];
  await using upstream = await startUpstream((request) => void held.push(request));
  await using gateway = await startLlmGateway({
    models: [endpoint(upstream.url)],
    settings: { concurrency: 1, queue: 1 },
  });
  const ask = () => gateway.client.chat.completions.create(question);
  const first = ask();
  await until("the first is asked", () => held.length === 1);
  const second = ask();
  await until("the second waits", () => gateway.servers.heldOf("org/m 1")?.queue.waiting === 1);
  const third = await refusal(ask());
  assert.deepEqual([third.status, third.code, third.headers?.get("retry-after")], [429, "queue_full", "2"]);
  assert.equal(held.length, 1);
  sendJson(completion("1"))(held[0]!);
  assert.equal((await first).choices[0]?.message.content, "1");
  await until("the second is asked", () => held.length === 2);
  sendJson(completion("2"))(held[1]!);
  assert.equal((await second).choices[0]?.message.content, "2");
});

test("a caller that may not ask is refused before anything is sent, and told of what it asks", async () => {
  const told: string[] = [];
  await using upstream = await startUpstream(sendJson(completion("Yes.")));
  await using gateway = await startLlmGateway({
    models: [endpoint(upstream.url)],
    caller: {
      async admit(modelId) {
        if (told.length > 0) throw new LlmError(429, "budget_exceeded", `No more of ${modelId}.`);
      },
      ended: ({ modelId, usage }) => void told.push(`${modelId} ${usage.input + usage.output}`),
    },
  });
  await gateway.client.chat.completions.create(question);
  const refused = await refusal(gateway.client.chat.completions.create(question));
  assert.equal(refused.code, "budget_exceeded");
  assert.deepEqual(told, ["org/m 1 10"]);
  assert.equal(upstream.requests.length, 1);
});
