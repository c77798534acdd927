// Secrets stay where they belong. They are planted wherever a worker can be given one, and workers say them in every
// way there is to say something; then every file of the home, every answer of both APIs, and all that the program
// printed is searched for them: as they are, as JSON and URLs spell them, and in base64.
//
// Not planted: what is in a file that a worker leaves, which is its own affair. What a manifest says is kept as it was
// given, so a secret in it is looked for everywhere but there. The files that give a worker its message are there for as
// long as it may run.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { type Dirent, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { isObject, type JsonObject } from "../../src/engine/json.ts";
import { databaseFile } from "../../src/store/home.ts";
import { zipOf } from "../support/bundle-files.ts";
import { runtimeApiOf, startGateway } from "../support/gateway-api.ts";
import { aggregator, executor, graph, module, router, sensor } from "../support/graphs.ts";
import { type Program, temporaryHome } from "../support/program.ts";

const word = () => randomBytes(15).toString("hex");

/** By where each is planted. */
const planted = {
  passed: `passed-${word()}`,
  passedKey: `-----BEGIN KEY-----\n${word()}${word()}\n${word()}\n-----END KEY-----`,
  passedOdd: `odd "${word()}" \\ ü+/`,
  configured: `configured-${word()}`,
  configuredOdd: `odd "${word()}" \\n`,
  configuredByWord: `by-word-${word()}`,
  configuredInAddress: `in-address-${word()}`,
  configuredByPath: `by-path-${word()}`,
  referenced: `referenced-${word()}`,
  input: `input-${word()}`,
  inputInAddress: `input-in-address-${word()}`,
  inputByPath: `input-by-path-${word()}`,
  initial: `initial-${word()}`,
  message: `message-${word()}`,
  apiToken: `api-${word()}`,
  secretKey: randomBytes(32).toString("base64"),
};

/** Those in a manifest. */
const inManifest = { environment: `environment-${word()}`, module: `module-${word()}` };

const END_CHARS = 12;

/** What is looked for: each line of a secret that no other text has; of its random part, also the ends alone. */
const texts = (secrets: Readonly<Record<string, string>>) =>
  Object.entries(secrets).flatMap(([where, secret]) => {
    const lines = secret.split("\n").filter((line) => !line.startsWith("-----"));
    const random = lines.flatMap((line) => line.match(/[0-9a-f]{30,}/) ?? []);
    const ends = random.flatMap((text) => [text.slice(0, END_CHARS), text.slice(-END_CHARS)]);
    return [...new Set([...lines, ...random, ...ends])].map((text) => ({ where, text }));
  });

/** Every way in which a text can be written that this test looks for; of an end alone, as it is. */
function formsOf(text: string): readonly string[] {
  if (text.length === END_CHARS) return [text];
  const forms = [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text)];
  for (const before of ["", "-", "--"]) {
    const encoded = Buffer.from(before + text).toString("base64");
    // The first and last characters depend on what stands beside the text.
    const inside = encoded.slice(before.length === 0 ? 0 : 4, -4);
    forms.push(inside, inside.replaceAll("+", "-").replaceAll("/", "_"));
  }
  return [...new Set(forms)];
}

/** The worker: it says what it was given in every way, then ends as it is told. */
const worker = `
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
const env = process.env;
const config = JSON.parse(env.SVC_BLUEPRINT_CONFIG_JSON);
const input = JSON.parse(readFileSync(env.SVC_INPUT_FILE, "utf8"));
const secrets = [env.PASSED, env.PASSED_KEY, env.PASSED_ODD, env.SERVICE_TOKEN,
  config.api_key, config.deep.password, config.region, config.list[0].token, config.aws_secret_access_key,
  config.database, new URL(config.database).password, config.mail.box,
  input.api_keys[0], input.callback, new URL(input.callback).password, input.mail.box].filter((text) => text !== undefined);
const said = secrets.flatMap((text) => [
  text, JSON.stringify({ text }), JSON.stringify(JSON.stringify([text])), "https://x/?q=" + encodeURIComponent(text),
  ...["", "u", "user:"].map((before) => Buffer.from(before + text).toString("base64")),
  Buffer.from(text).toString("base64url"),
]);
const all = said.join(" ");
for (const text of said) { console.log("out", text); console.error("err", text); }
console.log("x".repeat(65500) + all + all);
const event = (type, payload) => appendFileSync(env.SVC_EVENT_STREAM, JSON.stringify({ type, payload }) + "\\n");
event("log", { level: "error", message: all, fields: { [all]: [all] } });
event("progress", { percent: 5, label: all });
event("metric", { name: all, value: 1, model: all });
event("human_input_requested", { prompt: all, allowed_decisions: ["yes", ...secrets], default_action: secrets[0],
  timeout_seconds: 0.05 });
// An answer to a worker that has ended would start it again.
while (readFileSync(env.SVC_HUMAN_RESPONSES, "utf8") === "") await new Promise((resolve) => setTimeout(resolve, 10));
event("my_own", { [all]: { deep: [all] } });
for (const text of secrets) if (/^[\\w.:-]+$/.test(text)) event(text, {});
appendFileSync(env.SVC_EVENT_STREAM, all + "\\n" + "y".repeat(170) + all + "\\n");
// Until a worker has ended, what is in its folder is its own.
if (env.HOW !== "hang") writeFileSync(env.SVC_OUTPUT_DIR + "/" + secrets[0] + ".txt", "harmless");
writeFileSync(env.SVC_OUTPUT_DIR + "/report.txt", "harmless");
if (env.HOW === "hang") { console.log("hanging"); setInterval(() => {}, 1000); }
else if (env.HOW === "fail") { console.error("It broke: " + all); process.exitCode = 3; }
else if (env.HOW === "cut") {
  // Too long a line: it is cut somewhere in a secret, and what is redacted before that makes room.
  const text = (secrets[env.SVC_ATTEMPT - 1].split("\\n").at(1) ?? secrets[env.SVC_ATTEMPT - 1]) + " ";
  console.log(text.repeat(100_000 / text.length));
  console.error(text.repeat(100_000 / text.length));
  process.exitCode = 3;
}
else if (env.HOW === "invalid") console.log('{"emit_messages": [{"type": "' + "z".repeat(300) + '", "body": ' + JSON.stringify(all) + "}]}");
else console.log(JSON.stringify({
  events: [{ type: "my_own", payload: all }],
  emit_messages: [{ type: "said", body: { all, [all]: all } }],
  next_state: { all }, complete_step: [all],
  ...(env.HOW === "complete" ? { complete_run: { all } } : {}),
  outputs: [{ path: "report.txt", title: all }, { path: all + ".gone" }],
}));
`;

const thrower = `
export async function handle(message, context) {
  const { api_key, how } = context.config;
  const secret = api_key + " " + message.body.api_keys[0] + " " + message.body.mail.box;
  console.log("module", secret, JSON.stringify({ secret }));
  console.error(Buffer.from("user:" + secret).toString("base64"));
  if (how === "throw") throw new Error("It broke: " + secret);
  if (how === "wrong") return "y".repeat(1470) + secret;
  return { emit: [{ type: "said", body: { secret } }], state: { secret } };
}
`;

const passing = { pass_env: ["PASSED", "PASSED_KEY", "PASSED_ODD"] };
const says = (how: string, node: string, more: JsonObject = {}): JsonObject =>
  executor(node, ["node", "plant.mjs"], {
    ...passing,
    ...more,
    upload_path: "plant.mjs",
    environment: { SERVICE_TOKEN: inManifest.environment, HOW: how },
  });
const moduleSays = (how: string, node: string): JsonObject =>
  module(node, { module: "thrower.mjs", api_key: inManifest.module, how });

const speakers = [
  says("succeed", "succeeds"),
  says("fail", "fails"),
  says("invalid", "invalid"),
  says("cut", "cut", { max_attempts: 9, retry_backoff_ms: 1 }),
  executor("missing", [`/nowhere/${"x".repeat(41)}/${inManifest.environment}`], {
    environment: { SERVICE_TOKEN: inManifest.environment },
  }),
  executor("shell", `: ${"x".repeat(48)} ${inManifest.environment}; echo "$PASSED_ODD" >&2; exit 7`, {
    ...passing,
    environment: { SERVICE_TOKEN: inManifest.environment },
  }),
  moduleSays("throw", "throws"),
  moduleSays("wrong", "wrong"),
  moduleSays("return", "returns"),
];
const names = speakers.map(({ node_id }) => String(node_id));

const talkative = graph(
  "talkative",
  [router("in"), ...speakers, aggregator("out", { complete_run: false })],
  [["in", "out"] as const, ...names.flatMap((name) => [["in", name] as const, [name, "out"] as const])],
  { policies: { failure_policy: "continue" } },
);
const failing = graph("failing", [says("fail", "fails")]);
const completing = graph("completing", [says("complete", "completes")]);
const hanging = graph("hanging", [says("hang", "hangs")]);

const configuration = {
  api_key: planted.configured,
  deep: { password: planted.configuredOdd },
  region: { $env: "REFERENCED" },
  list: [{ token: planted.configured }],
  aws_secret_access_key: planted.configuredByWord,
  database: `postgres://user:${planted.configuredInAddress}@db.example.org/app`,
  mail: { box: planted.configuredByPath, max_tokens: 100 },
};

const inputs = {
  question: "harmless",
  api_keys: [planted.input],
  callback: `https://user:${planted.inputInAddress}@example.org/done`,
  mail: { box: planted.inputByPath },
};
/** What manifests name beside that. */
const named = { secrets: ["mail.box"] };

const env = {
  SVC_LOG_LEVEL: "trace",
  SVC_EXECUTOR_MAX_CONCURRENCY: "4",
  SVC_API_TOKEN: planted.apiToken,
  SVC_SECRET_KEY: planted.secretKey,
  PASSED: planted.passed,
  PASSED_KEY: planted.passedKey,
  PASSED_ODD: planted.passedOdd,
  REFERENCED: planted.referenced,
};

let home: string;
let program: Program;
let printed = "";
before(async () => {
  home = await temporaryHome();
  program = await startGateway({ home, env });
});
after(async () => {
  await program.stop();
  await rm(home, { recursive: true, force: true });
});

const authorization = `Bearer ${planted.apiToken}`;

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(program.api + path, { ...init, headers: { authorization, ...init.headers } });
}

async function post(path: string, body: JsonObject): Promise<JsonObject> {
  const headers = { "content-type": "application/json", "idempotency-key": word() };
  const answer = await ask(path, { method: "POST", body: JSON.stringify(body), headers });
  const text = await answer.text();
  assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
  return JSON.parse(text) as JsonObject;
}

/** Uploads a bundle with the workers, makes a job of it and starts it. */
async function start(manifest: JsonObject): Promise<{ jobId: string; runId: string }> {
  const files = { "payloads/plant.mjs": worker, "payloads/thrower.mjs": thrower };
  const form = new FormData();
  form.set(
    "bundle",
    new Blob([await zipOf({ "manifest.json": { ...manifest, ...named }, ...files })]),
    "bundle.zip",
  );
  const uploaded = (await (await ask("/bundles", { method: "POST", body: form })).json()) as JsonObject;
  const job = await post("/jobs", {
    bundle_id: uploaded.bundle_id ?? null,
    resolved_configuration: configuration,
  });
  const run = await post(`/jobs/${String(job.job_id)}/runs`, { inputs });
  return { jobId: String(job.job_id), runId: String(run.run_id) };
}

const historyOf = async (runId: string) => (await ask(`/runs/${runId}/events/stream`)).text();

async function untilItSays(runId: string, text: string): Promise<void> {
  const answer = await ask(`/runs/${runId}/logs/stream?text=${encodeURIComponent(text)}`);
  let said = "";
  for await (const chunk of answer.body ?? []) {
    said += Buffer.from(chunk).toString("latin1");
    if (said.includes(text)) return;
  }
  assert.fail(`the run ended without saying ${text}; it said:\n${said}`);
}

/** What is looked for, in all its forms. */
type Forms = readonly { readonly where: string; readonly form: string }[];
const forms = (secrets: Readonly<Record<string, string>>): Forms =>
  texts(secrets).flatMap(({ where, text }) => formsOf(text).map((form) => ({ where, form })));
const PLANTED = forms(planted);
const IN_MANIFEST = forms(inManifest);
const ALL = [...PLANTED, ...IN_MANIFEST];

/** Asserts that nothing of the secrets is in a text or in bytes. */
function assertNoneIn(content: string | Buffer, place: string, secrets: Forms): void {
  const found = secrets.filter(({ form }) => content.includes(form));
  const shown = found.map(({ where, form }) => {
    const at = content.indexOf(form);
    const around = content.slice(Math.max(0, at - 300), at + form.length + 100).toString();
    return `${where} as ${form}: …${around}…`;
  });
  assert.deepEqual(shown, [], `${place} has secrets in it`);
}

/** @param hasEnded whether no worker is left whose message could be on its way to it */
function assertNoneInHome({ hasEnded = false } = {}): void {
  let files = 0;
  for (const entry of entriesBelow(home)) {
    const path = relative(home, join(entry.parentPath, entry.name));
    assertNoneIn(path, "the name of a file", ALL);
    if (!entry.isFile()) continue;
    files++;
    if (!hasEnded && /^(?:input|message)\.json$/.test(entry.name)) continue;
    const bytes = bytesOf(join(home, path));
    assertNoneIn(bytes, path, PLANTED);
    if (!path.startsWith("troupe.db") && !path.endsWith("manifest.json"))
      assertNoneIn(bytes, path, IN_MANIFEST);
  }
  assert.ok(files > 5, `only ${files} files were found`);
}

/** What is in a folder and in those below it. Not read in one call, which fails when one of them is gone meanwhile. */
function entriesBelow(folder: string): readonly Dirent[] {
  const entries = orGone<Dirent[]>([], () => readdirSync(folder, { withFileTypes: true }));
  const below = entries.filter((entry) => entry.isDirectory());
  return [...entries, ...below.flatMap(({ name }) => entriesBelow(join(folder, name)))];
}

const bytesOf = (path: string) => orGone(Buffer.of(), () => readFileSync(path));

/** Reads what may be gone: what an ended attempt leaves is removed at any time. */
function orGone<Read>(gone: Read, read: () => Read): Read {
  try {
    return read();
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOENT");
    return gone;
  }
}

/** Every value of every table, but for the manifests themselves. */
function assertNoneInRows(): void {
  const database = new DatabaseSync(databaseFile(home), { readOnly: true });
  try {
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    for (const { name: table } of tables) {
      for (const row of database.prepare(`SELECT * FROM ${String(table)}`).iterate()) {
        for (const [column, value] of Object.entries(row)) {
          if (column === "manifest_json" || value === null) continue;
          assertNoneIn(String(value), `${String(table)}.${column}`, ALL);
        }
      }
    }
  } finally {
    database.close();
  }
}

/** Every GET of the gateway's document, for these jobs and runs. */
async function pathsOfGateway(jobs: readonly { jobId: string; runId: string }[]): Promise<readonly string[]> {
  const document = (await (
    await fetch(`${program.url}/openapi.json`, { headers: { authorization } })
  ).json()) as {
    paths: Readonly<Record<string, JsonObject>>;
  };
  const paths: string[] = [];
  for (const [template, methods] of Object.entries(document.paths)) {
    if (!isObject(methods.get) || !template.startsWith("/api/v1")) continue;
    // It has no end, and what it tells are records of these lists.
    if (template === "/api/v1/stream") continue;
    const path = template.slice("/api/v1".length);
    for (const { jobId, runId } of jobs) {
      const filled = path.replace("{job_id}", jobId).replace("{run_id}", runId);
      if (!filled.includes("{artifact_id}")) paths.push(filled.replace(/\{\w+\}/g, "none"));
      else paths.push(...(await artifactsOf(runId)).map((id) => filled.replace("{artifact_id}", id)));
    }
  }
  const full = jobs.map(({ jobId }) => `/jobs/${jobId}?view=full`);
  return [...new Set([...paths, ...full])];
}

async function artifactsOf(runId: string): Promise<readonly string[]> {
  const { items } = (await (await ask(`/runs/${runId}/artifacts?page_size=200`)).json()) as {
    items: readonly { artifact_id: string }[];
  };
  return items.map(({ artifact_id }) => artifact_id);
}

describe("planted secrets", () => {
  const ran: { jobId: string; runId: string }[] = [];

  test("workers do get them", async () => {
    const digests = `for name in PASSED PASSED_KEY PASSED_ODD SVC_BLUEPRINT_CONFIG_JSON; do
      printenv $name | sha256sum | cut -c1-64; done; (cat "$SVC_INPUT_FILE"; echo) | sha256sum | cut -c1-64`;
    const { runId } = await start(graph("checks", [executor("checks", digests, passing)]));
    const history = await historyOf(runId);
    const opened = { ...configuration, region: planted.referenced };
    const given = [JSON.stringify(opened), JSON.stringify(inputs)];
    for (const text of [planted.passed, planted.passedKey, planted.passedOdd, ...given]) {
      assert.ok(history.includes(createHash("sha256").update(`${text}\n`).digest("hex")), text);
    }
  });

  test("are in no file while a worker says them, nor after the program was killed", async () => {
    const run = await start(hanging);
    await untilItSays(run.runId, "hanging");
    assertNoneInHome();
    await program.kill();
    assertNoneInHome();
    printed += program.output();
    program = await startGateway({ home, env });
    await untilItSays(run.runId, "interrupted");
    await post(`/jobs/${run.jobId}/cancel`, {});
    await historyOf(run.runId);
    ran.push(run);
  });

  test("are in no file and no row, however workers said them and however they ended", async () => {
    for (const manifest of [talkative, failing, completing]) {
      const run = await start(manifest);
      const history = await historyOf(run.runId);
      ran.push(run);
      assert.match(history, /\[redacted\]/);
      if (manifest !== talkative) continue;
      for (const name of names) {
        assert.ok(history.includes(`"agent_id":"${name}"`), `${name} did not run`);
      }
      assert.equal(history.match(/^event: agent_failed$/gm)?.length, 7, history.slice(0, 5_000));
    }
    assertNoneInHome();
    assertNoneInRows();
  });

  test("of messages and manifests that the runtime API is sent reach their workers alone, also when sent again", async () => {
    const { url, api } = await runtimeApiOf(program);
    const send = async (path: string, body: JsonObject): Promise<JsonObject> => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(new URL(api + path, url), {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
      return JSON.parse(text) as JsonObject;
    };
    // Prints its input in plaintext and as a digest, which shows that it is the plaintext, and fails.
    const says = 'cat "$SVC_INPUT_FILE" >&2; echo "digest $(sha256sum < "$SVC_INPUT_FILE")" >&2; exit 3';
    const manifest = graph(
      "sent",
      [
        router("token"),
        executor("says", says),
        executor("listens", 'while read -r line; do echo "heard $line"; done', { lifecycle: "long_lived" }),
        sensor("open"),
      ],
      [["token", "says"]],
      { policies: { failure_policy: "continue" }, type: "service", ...named },
    );
    const body = { client_secret: planted.initial, mail: { box: planted.inputByPath } };
    const job = await send("/jobs", { ...manifest, initial_inputs: { token: [body] } });
    const run = { jobId: String(job.id), runId: String(job.run_id) };
    const digest = createHash("sha256").update(JSON.stringify(body)).digest("hex");
    const untilSaid = async (text: string, times = 1): Promise<void> => {
      const answer = await fetch(new URL(`${api}/jobs/${run.jobId}/events/stream`, url));
      let said = "";
      for await (const chunk of answer.body ?? []) {
        said += Buffer.from(chunk).toString("latin1");
        if (said.split(text).length > times) return;
      }
      assert.fail(`the job did not say ${text}: ${said}`);
    };
    await untilSaid('"type":"message_dead_lettered"');
    const letters = `${api}/runs/${run.runId}/dead-letters`;
    const shown = await (await fetch(new URL(letters, url))).text();
    assert.match(shown, /"client_secret":"\*{8}"/);
    assertNoneIn(shown, "the dead letter", PLANTED);
    await send(`/runs/${run.runId}/dead-letters/retry`, {});
    await send(`/jobs/${run.jobId}/messages`, { agent_id: "listens", body: { pass: planted.message } });
    await untilSaid("heard {");
    await untilSaid('"type":"message_dead_lettered"', 2);
    await send(`/jobs/${run.jobId}/cancel`, {});
    const text = await (await fetch(new URL(`${api}/jobs/${run.jobId}/events/stream`, url))).text();
    assert.equal(text.match(new RegExp(`"stream":"stderr".*digest ${digest}`, "g"))?.length, 2, text);
    assert.match(text, /heard .*\[redacted\]/);
    assertNoneIn(text, "the history", PLANTED);
    assertNoneInRows();
  });

  test("are in no answer of the gateway", async () => {
    const paths = await pathsOfGateway(ran);
    assert.ok(paths.length > 50, `only ${paths.length} paths were found`);
    for (const path of paths) {
      const text = await (await ask(path)).text();
      // Of a manifest, what stands under the keys of secrets is masked; the words of a command are shown.
      const masked = text.replaceAll(/"command":("(?:[^"\\]|\\.)*"|\[[^\]]*\])/g, "");
      assertNoneIn(path.endsWith("view=full") ? masked : text, `GET ${path}`, ALL);
    }
  });

  test("are in no answer of the runtime API", async () => {
    const { api, url } = await runtimeApiOf(program);
    const get = async (path: string): Promise<string> => {
      const answer = await fetch(new URL(path, url));
      const text = await answer.text();
      assert.equal(answer.status, 200, `${path}: ${text}`);
      assertNoneIn(text, `GET ${path} of the runtime API`, ALL);
      return text;
    };
    const list = async (path: string) =>
      (JSON.parse(await get(path)) as { data: readonly Readonly<Record<string, string>>[] }).data;
    const jobs = await list(`${api}/jobs?include_terminal=true`);
    assert.ok(jobs.length >= ran.length);
    for (const { job_id, run_id } of jobs) {
      const ofJob = ["", "/events", "/events/stream", "/workflow-progress"];
      for (const path of ofJob) await get(`${api}/jobs/${job_id}${path}`);
      const ofRun = [
        "result",
        "logs",
        "timeline",
        "observability-summary",
        "human",
        "dead-letters",
        "stream",
      ];
      for (const path of ofRun) await get(`${api}/runs/${run_id}/${path}`);
      const artifacts = await list(`${api}/runs/${run_id}/artifacts`);
      assert.ok(artifacts.length > 0);
      for (const artifact of artifacts) await get(String(artifact.url));
    }
  });

  test("are in nothing that the program printed", async () => {
    await program.stop();
    printed += program.output();
    assert.match(printed, /"level":/);
    assertNoneIn(printed, "the program's output", ALL);
    assertNoneInHome({ hasEnded: true });
  });
});
