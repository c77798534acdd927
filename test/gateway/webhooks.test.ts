// Webhooks over HTTP: made, shown, rotated and removed with their schedules, and sent signed and unsigned requests.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { PROBLEM_TYPE } from "../../src/http/core/problem.ts";
import { databaseFile } from "../../src/store/home.ts";
import { zipOf } from "../support/bundle-files.ts";
import { ask, assertProblem, createJob, ended, pathsOf, sendBundle, walk } from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { startGatewayHere, unlessOnPostgres } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { exchange, request } from "../support/raw-http.ts";

const TOKEN = "correct-horse-battery-staple-0123456789";
const bearer = { authorization: `Bearer ${TOKEN}` };

let program: Program;
/** Has an API token. */
let closed: Program;
let jobId = "";
let types = 0;
before(async () => {
  [program, closed] = await Promise.all([
    startGatewayHere(),
    startGatewayHere({ env: { SVC_API_TOKEN: TOKEN, SVC_RATE_LIMIT: "30" } }),
  ]);
  jobId = await createJob(program, graph("quick", [router("in")]));
});
after(() => Promise.all([program.stop(), closed.stop()]));

const newType = () => `hook.${++types}`;
const create = (body: JsonObject, headers: Record<string, string> = {}) =>
  ask(program, "POST", "/schedules", { body: { job_id: jobId, ...body }, headers });
interface Made {
  readonly id: string;
  readonly path: string;
  readonly secret: string;
  readonly type: string;
}
const make = async (webhook: JsonObject = { scheme: "github" }, body: JsonObject = {}): Promise<Made> => {
  const type = newType();
  const answer = await create({ event: { type }, webhook, ...body });
  assert.equal(answer.status, 201, answer.text);
  const { path, secret } = answer.body.webhook as { path: string; secret: string };
  return { id: String(answer.body.schedule_id), path, secret, type };
};
const get = async (id: string) => (await ask(program, "GET", `/schedules/${id}`)).body;
const patch = (id: string, body: unknown, ifMatch = "*") =>
  ask(program, "PATCH", `/schedules/${id}`, { body, headers: { "if-match": ifMatch } });
const webhookOf = ({ body }: { readonly body: JsonObject }) => body.webhook as JsonObject;

interface Sent {
  readonly status: number;
  readonly headers: Headers;
  readonly body: JsonObject;
}
const send = async (
  path: string,
  text: string,
  headers: Record<string, string> = {},
  to = program,
): Promise<Sent> => {
  const answer = await fetch(`${to.url}${path}`, {
    method: "POST",
    body: text,
    headers: { "content-type": "application/json", ...headers },
  });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as JsonObject };
};
const hexOf = (secret: string, text: string) => createHmac("sha256", secret).update(text).digest("hex");
const github = (secret: string, text: string) => ({ "x-hub-signature-256": `sha256=${hexOf(secret, text)}` });
const stripe = (secret: string, text: string, atSeconds = nowSeconds()) => ({
  "stripe-signature": `t=${atSeconds},v1=${hexOf(secret, `${atSeconds}.${text}`)}`,
});
const nowSeconds = () => Math.floor(Date.now() / 1_000);
const standard = (secret: string, text: string, id = "msg_1", atSeconds = nowSeconds()) => {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${atSeconds}.${text}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": String(atSeconds),
    "webhook-signature": `v1,${signature}`,
  };
};
const deliver = ({ path, secret }: Made, payload: unknown) => {
  const text = JSON.stringify(payload);
  return send(path, text, github(secret, text));
};
const eventsOf = (type: string) => walk(program, `/events?type=${type}`);
const isRefused = ({ status, headers, body }: Sent, wanted: number, code: string) => {
  assert.deepEqual([status, body.code, headers.get("content-type")], [wanted, code, PROBLEM_TYPE]);
  return String(body.detail);
};

describe("a schedule with a webhook", () => {
  test("shows its secret once: when it is made, and not when that is asked again", async () => {
    const body = { event: { type: newType() }, webhook: { scheme: "github" } };
    const key = { "idempotency-key": newType() };
    const first = await create(body, key);
    const { path, secret, ...rest } = webhookOf(first);
    assert.deepEqual(rest, { scheme: "github", tolerance_seconds: 300 });
    assert.match(String(path), /^\/hooks\/[\w-]{43}$/);
    assert.match(String(secret), /^[\w-]{43}$/);
    const again = await create(body, key);
    assert.deepEqual([again.status, webhookOf(again)], [201, { ...webhookOf(first), secret: "********" }]);
    const shown = await ask(program, "GET", `/schedules/${first.body.schedule_id}`);
    assert.deepEqual(webhookOf(shown), webhookOf(again));
    assert.equal(shown.headers.get("etag"), first.headers.get("etag"));
    const { items } = (await ask(program, "GET", "/schedules")).body;
    assert.ok(!JSON.stringify(items).includes(String(secret)));
  });

  test("keeps a secret that is given, also of Standard Webhooks, and makes one for each kind", async () => {
    const given = await make({ scheme: "stripe", secret: "whsec_of_stripe", tolerance_seconds: 5 });
    assert.equal(given.secret, "whsec_of_stripe");
    assert.match((await make({ scheme: "hmac-sha256" })).secret, /^whsec_[\w+/]{43}=$/);
  });

  const mistakes: readonly (readonly [string, JsonObject, string])[] = [
    ["no scheme", { webhook: {} }, "/webhook/scheme"],
    ["an unknown scheme", { webhook: { scheme: "gitlab" } }, "/webhook/scheme"],
    ["an empty secret", { webhook: { scheme: "github", secret: "" } }, "/webhook/secret"],
    ["a masked secret", { webhook: { scheme: "github", secret: "********" } }, "/webhook/secret"],
    ["a key that is no base64", { webhook: { scheme: "hmac-sha256", secret: "whsec_?" } }, "/webhook/secret"],
    ["a path", { webhook: { scheme: "github", path: "/hooks/mine" } }, "/webhook/path"],
    ["a type that others may not send", { event: { type: "run.completed" } }, "/webhook"],
    ["a rule by the clock", { event: undefined as never, cron: { expressions: ["@daily"] } }, "/webhook"],
  ];
  for (const [what, body, path] of mistakes)
    test(`is refused with ${what}`, async () => {
      const answer = await create({ event: { type: newType() }, webhook: { scheme: "github" }, ...body });
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer), [path]);
    });
});

describe("a signed request", () => {
  test("becomes an event of the schedule's type and starts its run, with the body as its payload", async () => {
    const hook = await make(undefined, {
      inputs: { ref: { $event: "/payload/ref" }, from: { $event: "/source" } },
    });
    const answer = await deliver(hook, { ref: "main", n: [1, null] });
    const { matched, event_id: eventId, ...rest } = answer.body;
    const source = `webhook:${hook.id}`;
    assert.deepEqual([answer.status, rest.type, rest.source], [202, hook.type, source]);
    assert.deepEqual(Object.keys(rest).sort(), ["received_at", "source", "type"]);
    const [{ schedule_id, run_id }] = matched as [JsonObject];
    assert.equal(schedule_id, hook.id);
    const { run } = await ended(program, String(run_id));
    assert.deepEqual(
      [run.inputs, run.trigger],
      [
        { ref: "main", from: source },
        { kind: "event", id: hook.id },
      ],
    );
    const event = await ask(program, "GET", `/events/${eventId}`);
    assert.equal(answer.headers.get("location"), `/api/v1/events/${eventId}`);
    assert.deepEqual(event.body.payload, { ref: "main", n: [1, null] });
  });

  test("reaches every schedule of the type, each by its own filters", async () => {
    const hook = await make();
    const event = { type: hook.type, filters: [{ path: "/payload/ref", op: "eq", value: "main" }] };
    const other = (await create({ event })).body.schedule_id;
    const reached = async (ref: string) =>
      ((await deliver(hook, { ref })).body.matched as JsonObject[]).map(({ schedule_id }) => schedule_id);
    assert.deepEqual(await reached("main"), [hook.id, other]);
    assert.deepEqual(await reached("dev"), [hook.id]);
  });

  test("that was sent before has no effect and gets the first answer, also with a new time and signature", async () => {
    const text = '{"id":"evt_1"}';
    const hooks = [
      { hook: await make(), sign: github },
      { hook: await make({ scheme: "stripe" }), sign: stripe },
      { hook: await make({ scheme: "hmac-sha256" }), sign: standard },
    ];
    for (const { hook, sign } of hooks) {
      const first = await send(hook.path, text, sign(hook.secret, text));
      assert.equal(first.status, 202, JSON.stringify(first.body));
      const later = sign === stripe ? stripe(hook.secret, text, nowSeconds() + 2) : sign(hook.secret, text);
      const again = await send(hook.path, text, later);
      assert.deepEqual([again.status, again.body], [202, first.body]);
      assert.equal(again.headers.get("idempotency-replayed"), "true");
      assert.equal((await eventsOf(hook.type)).length, 1);
    }
    const { hook } = hooks[2] ?? assert.fail();
    const other = await send(hook.path, text, standard(hook.secret, text, "msg_2"));
    assert.equal(other.headers.get("idempotency-replayed"), null);
    assert.equal((await eventsOf(hook.type)).length, 2);
  });

  test("that several send at the same moment is one event", async () => {
    const hook = await make();
    const answers = await Promise.all([1, 2, 3].map(() => deliver(hook, { id: 1 })));
    assert.equal(new Set(answers.map(({ body }) => body.event_id)).size, 1);
    assert.equal((await eventsOf(hook.type)).length, 1);
  });

  test("is accepted while the schedule is paused, and starts no run", async () => {
    const hook = await make();
    await ask(program, "POST", `/schedules/${hook.id}/pause`);
    const { status, body } = await deliver(hook, {});
    const reason = "the schedule is paused";
    assert.deepEqual([status, body.matched], [202, [{ schedule_id: hook.id, skipped: "paused", reason }]]);
  });

  test("becomes an event of the type that the schedule has by then", async () => {
    const hook = await make();
    const type = newType();
    await patch(hook.id, { event: { type } });
    assert.equal((await deliver(hook, {})).body.type, type);
  });
});

describe("a request is refused", () => {
  test("with 401 and what is wrong, when it is not signed, or not for this body, or too old", async () => {
    const hook = await make();
    const unsigned = await send(hook.path, "{}");
    assert.match(isRefused(unsigned, 401, "invalid_signature"), /no header X-Hub-Signature-256/);
    assert.match(String(unsigned.headers.get("www-authenticate")), /X-Hub-Signature-256/);
    assert.match(
      isRefused(await send(hook.path, '{"a":1}', github(hook.secret, "{}")), 401, "invalid_signature"),
      /is not the one of this body/,
    );
    const timed = await make({ scheme: "stripe", tolerance_seconds: 60 });
    const old = await send(timed.path, "{}", stripe(timed.secret, "{}", nowSeconds() - 100));
    assert.match(isRefused(old, 401, "invalid_signature"), /more than 60 s ago/);
    assert.deepEqual([await eventsOf(hook.type), await eventsOf(timed.type)], [[], []]);
  });

  test("with 404, signed or not, at a path that is not there", async () => {
    const hook = await make();
    const absent = "/hooks/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (const path of [absent, "/hooks/x", `${hook.path}x`, "/hooks/%00"])
      assert.equal(
        isRefused(await send(path, "{}", github(hook.secret, "{}")), 404, "not_found"),
        "There is no webhook at this path.",
      );
  });

  test("with 415 and what to choose, when it is no JSON; with 400 when it says so and is none", async () => {
    const hook = await make();
    const signed = (text: string, more: Record<string, string> = {}) =>
      send(hook.path, text, { ...github(hook.secret, text), ...more });
    const form = await signed("payload=%7B%7D", { "content-type": "application/x-www-form-urlencoded" });
    assert.match(isRefused(form, 415, "unsupported_media_type"), /application\/json/);
    isRefused(await signed("{}", { "content-encoding": "gzip" }), 415, "unsupported_media_type");
    for (const text of ["{", "", "nothing"]) isRefused(await signed(text), 400, "malformed_json");
    const cloudEvent = { "content-type": "application/cloudevents+json; charset=utf-8" };
    assert.equal((await signed('{"specversion":"1.0"}', cloudEvent)).status, 202);
  });

  test("with 413 when its body is larger than 256 KiB, also as chunks, and at any path", async () => {
    const hook = await make();
    const largest = JSON.stringify("x".repeat(256 * 1024 - 2));
    assert.equal((await send(hook.path, largest, github(hook.secret, largest))).status, 202);
    const larger = `${largest} `;
    for (const path of [hook.path, "/hooks/x"])
      assert.match(
        isRefused(await send(path, larger, github(hook.secret, larger)), 413, "payload_too_large"),
        /256 KiB/,
      );
    const chunked = [
      ...[
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
        "Connection: close",
      ],
    ];
    const [answer] = await exchange(
      program,
      `${request("POST", hook.path, chunked)}${larger.length.toString(16)}\r\n${larger}\r\n0\r\n\r\n`,
    );
    assert.equal(answer?.status, 413);
  });
});

const missing = ["bash", "curl", "jq", "openssl"].find(
  (tool) => spawnSync(tool, ["version"]).error !== undefined,
);

test("the recipes of docs/webhooks.md run as they stand", {
  skip: missing && `there is no ${missing}`,
}, async () => {
  const page = await readFile(new URL("../../docs/webhooks.md", import.meta.url), "utf8");
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
  assert.equal(blocks.length, 3);
  const script = blocks.join("").replaceAll("http://127.0.0.1:54001", program.url);
  const shell = spawn("bash", ["-euo", "pipefail"], {
    env: { ...process.env, JOB: jobId, NO_PROXY: "*" },
    timeout: 60_000,
  });
  shell.stdin.end(script);
  const [printed, complained] = await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, "exit"),
  ]);
  assert.equal(shell.exitCode, 0, `${printed}\n${complained}`);
  const runs = [...printed.matchAll(/"run_id": "(run_\w+)"/g)].map(([, id = ""]) => id);
  assert.equal(runs.length, 2, printed);
  assert.deepEqual((await ended(program, runs[0] ?? "")).run.inputs, { commit: "8f4d2c1" });
});

describe("a change", () => {
  test("makes another secret, and shows it once; the former one is void", async () => {
    const hook = await make();
    const changed = await patch(hook.id, { webhook: { secret: null } });
    const { secret, path } = webhookOf(changed);
    assert.equal(path, hook.path);
    assert.notEqual(secret, hook.secret);
    assert.equal(
      changed.headers.get("etag"),
      (await ask(program, "GET", `/schedules/${hook.id}`)).headers.get("etag"),
    );
    isRefused(await deliver(hook, {}), 401, "invalid_signature");
    assert.equal((await deliver({ ...hook, secret: String(secret) }, {})).status, 202);
    const given = await patch(hook.id, { webhook: { secret: "my own" } });
    assert.equal(webhookOf(given).secret, "my own");
  });

  test("makes another path; the former one is gone", async () => {
    const hook = await make();
    const changed = webhookOf(await patch(hook.id, { webhook: { path: null } }));
    assert.notEqual(changed.path, hook.path);
    assert.equal(changed.secret, "********");
    isRefused(await deliver(hook, {}), 404, "not_found");
    assert.equal((await deliver({ ...hook, path: String(changed.path) }, {})).status, 202);
  });

  test("to what is shown changes nothing", async () => {
    const hook = await make();
    const { webhook } = await get(hook.id);
    assert.deepEqual(webhookOf(await patch(hook.id, { webhook })), webhook);
    assert.equal((await deliver(hook, {})).status, 202);
  });

  test("adds a webhook, changes how its requests are signed, and removes it; so does deleting the schedule", async () => {
    const type = newType();
    const id = String((await create({ event: { type } })).body.schedule_id);
    const { path, secret } = webhookOf(await patch(id, { webhook: { scheme: "github" } })) as Record<
      string,
      string
    >;
    const hook = { id, path: path ?? "", secret: secret ?? "", type };
    assert.equal((await deliver(hook, {})).status, 202);
    const { secret: shown } = webhookOf(await patch(id, { webhook: { scheme: "stripe" } }));
    assert.equal(shown, "********");
    assert.equal((await send(hook.path, "[1]", stripe(hook.secret, "[1]"))).status, 202);
    assert.equal((await patch(id, { webhook: null })).body.webhook, null);
    isRefused(await deliver(hook, {}), 404, "not_found");
    const other = await make();
    await ask(program, "DELETE", `/schedules/${other.id}`, { headers: { "if-match": "*" } });
    isRefused(await deliver(other, {}), 404, "not_found");
  });

  test("of the rule to a type that others may not send is refused while there is a webhook", async () => {
    const hook = await make();
    const answer = await patch(hook.id, { event: { type: "run.failed" } });
    assertProblem(answer, 422, "validation_failed");
    assert.deepEqual(pathsOf(answer), ["/webhook"]);
  });
});

describe("the door", () => {
  /** Of the program with an API token. */
  const closedHook = async (): Promise<Made> => {
    const zip = await zipOf({ "manifest.json": graph("quick", [router("in")]) });
    const bundle = await sendBundle(closed, zip, { headers: bearer });
    const asked = { headers: bearer };
    const job = await ask(closed, "POST", "/jobs", { body: { bundle_id: bundle.body.bundle_id }, ...asked });
    const type = newType();
    const body = { job_id: job.body.job_id, event: { type }, webhook: { scheme: "github" } };
    const answer = await ask(closed, "POST", "/schedules", { body, ...asked });
    assert.equal(answer.status, 201, answer.text);
    const { path, secret } = webhookOf(answer) as { path: string; secret: string };
    return { id: String(answer.body.schedule_id), path, secret, type };
  };

  test("needs no API token, and opens nothing else", async () => {
    const { path, secret } = await closedHook();
    const headers = { ...github(secret, "{}"), origin: "https://elsewhere.example.org" };
    assert.equal((await send(path, "{}", headers, closed)).status, 202);
    for (const [method, at] of [
      ["GET", path],
      ["PUT", path],
      ["POST", "/hooks"],
      ["POST", "/hook/x"],
    ] as const)
      assert.equal((await fetch(closed.url + at, { method })).status, 401, `${method} ${at}`);
  });

  test("without an API token answers to the names of this server only", async () => {
    const { path, secret } = await make();
    const [answer] = await exchange(
      program,
      request(
        "POST",
        path,
        [
          "Host: rebound.example.org",
          `X-Hub-Signature-256: ${github(secret, "{}")["x-hub-signature-256"]}`,
          "Connection: close",
        ],
        "{}",
      ),
    );
    assert.equal(answer?.status, 403);
  });

  test("leaves no path in the log, also when a secret cannot be decrypted", unlessOnPostgres, async () => {
    const hook = await make();
    const { path, id } = hook;
    {
      using database = new DatabaseSync(databaseFile(program.home));
      const damaged = "json_set(webhook_json, '$.secret', json('{\"$sealed\":\"AAAA\"}'))";
      database.prepare(`UPDATE schedules SET webhook_json = ${damaged} WHERE schedule_id = ?`).run(id);
    }
    isRefused(await deliver(hook, {}), 500, "internal");
    assert.match(program.output(), /"path":"\/hooks\/\*{8}".*give it a new one/);
    assert.ok(!program.output().includes(path.slice("/hooks/".length)));
    const secret = String(webhookOf(await patch(id, { webhook: { secret: null } })).secret);
    assert.equal((await deliver({ ...hook, secret }, {})).status, 202);
  });

  test("counts against the rate limit of the sender's address", async () => {
    const statuses: number[] = [];
    // More are allowed while they are sent, one every other second.
    while (statuses.length < 1_000 && statuses.at(-1) !== 429)
      statuses.push((await send("/hooks/x", "{}", {}, closed)).status);
    assert.equal(statuses.at(-1), 429);
    assert.equal((await ask(closed, "GET", "/schedules", { headers: bearer })).status, 200);
  });
});
