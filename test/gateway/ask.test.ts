// Asking a job: POST /jobs/{job_id}/mcp (spec gateway-api, rules 2 to 4), with the protocol's own client over a socket.
// Sentences in quotes are the specification's own.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { evidenceLimits } from "../../src/ask/evidence.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { askingGraph } from "../support/asking.ts";
import { zipOf } from "../support/bundle-files.ts";
import {
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  happens,
  sendBundle,
  startRun,
} from "../support/gateway-api.ts";
import { answer, executor, graph } from "../support/graphs.ts";
import { startGatewayHere, unlessOnPostgres } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { exchange } from "../support/raw-http.ts";
import { rowsOf } from "../support/stored-rows.ts";

const TOKEN = "a-token-for-asking";
const TOOLS = ["get_job_profile", "get_latest_run", "get_job_context", "ask_job"];
const extended = { extensions: ["svc.response"] };

let open: Program;
let closed: Program;
before(async () => {
  [open, closed] = await Promise.all([
    startGatewayHere(),
    startGatewayHere({ env: { SVC_API_TOKEN: TOKEN } }),
  ]);
});
after(() => Promise.all([open.stop(), closed.stop()]));

interface Item {
  readonly id: string;
  readonly kind: string;
  readonly text: string;
}

/** A client that has connected. @param era of the protocol: that of 2026 where the server has it, or that of 2025 */
async function connected(jobId: string, era: "auto" | "legacy" = "auto"): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: era } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${open.api}/jobs/${jobId}/mcp`)));
  return client;
}

/** The structured answer of a tool. */
async function use(client: Client, name: string, given: JsonObject = {}): Promise<JsonObject> {
  const { structuredContent, content, isError } = await client.callTool({ name, arguments: given });
  assert.ok(isError !== true, JSON.stringify(content));
  return structuredContent as JsonObject;
}

const itemsOf = (answered: JsonObject) => answered.evidence as unknown as readonly Item[];
const textOf = (answered: JsonObject, kind: string) =>
  itemsOf(answered)
    .filter((item) => item.kind === kind)
    .map(({ text }) => text)
    .join("\n");

const message = (name: string) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name, arguments: {} },
});

describe('"exists only when the package enables the extension svc.response"', () => {
  const worker = executor("work", "exit 0");
  const jobOf = (more: JsonObject, configuration: JsonObject = {}, files = {}) =>
    createJob(open, graph("extended", [worker], [], more), { resolved_configuration: configuration }, files);
  const old = { collaboration: { enabled: true } };

  for (const [what, tools, more, configuration, files] of [
    ["the manifest's extensions", 4, extended],
    ["the package's configuration", 4, {}, {}, { "config/default.json": extended }],
    ["the job's configuration", 4, {}, extended],
    ["metadata.collaboration of older packages", 3, { metadata: { collaboration: true } }],
    ["collaboration.enabled in a package's configuration", 3, {}, {}, { "config/default.json": old }],
    ["collaboration.enabled in a job's configuration", 3, {}, old],
    ["both", 4, { ...extended, metadata: { collaboration: true } }, old],
  ] as const) {
    test(`${what}: ${tools} tools`, async () => {
      const jobId = await jobOf(more, configuration, files);
      const job = await call(open, "GET", `/jobs/${jobId}`);
      assert.equal((job.links as JsonObject).mcp, `/api/v1/jobs/${jobId}/mcp`);
      assert.deepEqual(job.extensions, [tools === 4 ? "svc.response" : "svc.collaboration"]);
      await using client = disposable(await connected(jobId));
      const listed = await client.client.listTools();
      assert.deepEqual(
        listed.tools.map(({ name }) => name),
        TOOLS.slice(0, tools),
      );
      if (tools === 3) {
        const refused = client.client.callTool({ name: "ask_job", arguments: { question: "Who?" } });
        await assert.rejects(refused, /ask_job/);
      }
    });
  }

  test("any other package has none: 404, and no link", async () => {
    for (const more of [{}, { extensions: ["other"] }, { metadata: { collaboration: false } }]) {
      const jobId = await jobOf(more, { collaboration: { enabled: false } });
      const answered = await ask(open, "POST", `/jobs/${jobId}/mcp`, { body: message("get_job_profile") });
      const { detail } = assertProblem(answered, 404, "not_found");
      assert.match(String(detail), /svc\.response/);
      const { links } = await call(open, "GET", `/jobs/${jobId}`);
      assert.ok(!("mcp" in (links as JsonObject)));
    }
  });
});

const disposable = (client: Client) => ({ client, [Symbol.asyncDispose]: () => client.close() });

describe("tools", () => {
  let jobId = "";
  let client: Client;
  before(async () => {
    const script = [
      'cd "$SVC_OUTPUT_DIR"',
      "echo 'bytes of a file' > other.txt",
      "echo 'The harvest was good. See s3cr3t-in-config.' > report.md",
      "echo '<h1>Rain</h1><script>evil()</script> in May' > page.html",
      "echo 'a line of the log' >&2",
      answer({ complete_run: { orders: 12, city: "Ghent", password: "hunter2", note: "s3cr3t-in-config" } }),
    ].join("; ");
    const manifest = graph("harvest", [executor("counter", script)], [], {
      ...extended,
      outputs: [{ path: "report.md", title: "The report" }, "page.html"],
      metadata: { description: "Counts the harvest of the year." },
    });
    const configuration = { api_key: "s3cr3t-in-config" };
    jobId = await createJob(open, manifest, { name: "Harvest", resolved_configuration: configuration });
    client = await connected(jobId);
  });
  after(() => client.close());

  test("have input and output schemas, and say that they only read; in both eras of the protocol", async () => {
    for (const era of ["auto", "legacy"] as const) {
      await using other = disposable(await connected(jobId, era));
      const { tools } = await other.client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        TOOLS,
      );
      for (const { inputSchema, outputSchema, annotations, description } of tools) {
        assert.equal(inputSchema.type, "object");
        assert.equal(outputSchema?.type, "object");
        assert.equal(annotations?.readOnlyHint, true);
        assert.ok((description ?? "").length > 0);
      }
      assert.equal((await use(other.client, "get_job_profile")).name, "Harvest");
    }
  });

  test("before its first run a job tells what it is for, and that there is no run", async () => {
    const latest = await use(client, "get_latest_run");
    assert.deepEqual([latest.run_id, latest.status, latest.evidence], [null, null, []]);
    const { purpose, latest_run_id, active_runs } = await use(client, "get_job_profile");
    assert.match(String(purpose), /Counts the harvest of the year\.[\s\S]*agent counter/);
    assert.deepEqual([latest_run_id, active_runs], [null, 0]);
    const { answered } = await use(client, "ask_job", { question: "How many orders?" });
    assert.equal(answered, false);
  });

  test('"purpose, status and published evidence": no logs, no other files, no secrets', async () => {
    const { run } = await completed(open, jobId);
    const latest = await use(client, "get_latest_run");
    assert.deepEqual([latest.run_id, latest.status, latest.label], [run.run_id, "completed", "Completed"]);
    const context = await use(client, "get_job_context", { run_id: run.run_id! });
    assert.deepEqual([context.run_id, context.truncated, context.cut], [run.run_id, false, []]);
    assert.match(textOf(context, "result"), /^orders: 12$/m);
    assert.match(textOf(context, "output"), /The harvest was good\./);
    assert.match(textOf(context, "output"), /Rain +in May/);
    assert.match(textOf(context, "progress"), /Step counter is done/);
    const all = JSON.stringify([
      latest,
      context,
      await use(client, "ask_job", { question: "password note?" }),
    ]);
    for (const hidden of ["hunter2", "s3cr3t", "bytes of a file", "line of the log", "evil"]) {
      assert.ok(!all.includes(hidden), hidden);
    }
  });

  test("what a command has printed is a log, also in the result that its answer becomes", async () => {
    const script = ["echo 'a line that was printed' >&2", answer({ complete_step: { looms: 7 } })].join("; ");
    const printing = await createJob(open, graph("printing", [executor("counter", script)], [], extended));
    await completed(open, printing);
    await using own = disposable(await connected(printing));
    const context = await use(own.client, "get_job_context");
    assert.match(textOf(context, "result"), /\.result\.looms: 7$/m);
    assert.match(textOf(context, "result"), /\.exit_code: 0$/m);
    assert.doesNotMatch(JSON.stringify(context), /that was printed|complete_step/);
  });

  test("a run of another job is not told of", async () => {
    const other = await createJob(open, graph("other", [executor("work", "exit 0")]));
    const { run } = await completed(open, other);
    for (const name of ["get_job_context", "ask_job"]) {
      const given = { question: "status?", run_id: run.run_id! };
      const { question: _, ...only } = given;
      const told = await client.callTool({ name, arguments: name === "ask_job" ? given : only });
      assert.equal(told.isError, true);
      assert.match(JSON.stringify(told.content), /was not found/);
    }
  });

  test("what does not fit the schema is refused", async () => {
    for (const given of [{}, { question: "" }, { question: 1 }, { question: "x", more: 1 }]) {
      const told = await client.callTool({ name: "ask_job", arguments: given }).catch((error) => ({
        isError: true,
        content: String(error),
      }));
      assert.equal(told.isError, true, JSON.stringify(given));
    }
  });

  test('"starts no run": nothing in the store is changed by any tool', unlessOnPostgres, async () => {
    const before = storedIn(open);
    for (const name of TOOLS) await use(client, name, name === "ask_job" ? { question: "orders?" } : {});
    assert.deepEqual(storedIn(open), before);
  });
});

/** Every row of every table. */
function storedIn({ home }: Program): JsonObject {
  const tables = rowsOf(home, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  const rows = tables.map(({ name }) => [name, rowsOf(home, `SELECT * FROM "${name}"`)]);
  return Object.fromEntries(rows) as JsonObject;
}

describe("ask_job", () => {
  test("tells why a run failed and what people decided, with quotes that stand in the evidence", async () => {
    const failing = graph("failing", [executor("bad", "echo no maize left >&2; exit 3")], [], extended);
    const question = {
      request_id: "ship",
      prompt: "Ship version 3?",
      allowed_decisions: ["approve", "reject"],
    };
    const jobs = [
      await createJob(open, failing),
      await createJob(open, askingGraph("asking", [question], extended)),
    ] as const;
    await ended(open, await startRun(open, jobs[0]));
    const asking = await startRun(open, jobs[1]);
    await happens(open, asking, "human_input_requested");
    await using second = disposable(await connected(jobs[1]));
    const waiting = await use(second.client, "ask_job", { question: "Has anybody answered about shipping?" });
    const response = { decision: "approve", comment: "Looks ripe." };
    await call(open, "POST", `/runs/${asking}/human/ship/response`, response);
    await ended(open, asking);
    await using first = disposable(await connected(jobs[0]));
    for (const [client, asked, expected] of [
      [first.client, "Why did the run fail?", /failed/],
      [first.client, "What is the exit code?", /exit_code: 3/],
      [second.client, "What was the decision on version 3?", /approve/],
      [second.client, "Was there a comment?", /Looks ripe/],
    ] as const) {
      const told = await use(client, "ask_job", { question: asked });
      assert.equal(told.answered, true, asked);
      assert.match(String(told.answer), expected);
      const items = itemsOf(await use(client, "get_job_context"));
      for (const { id, quote } of told.citations as unknown as readonly { id: string; quote: string }[]) {
        assert.ok(items.find((item) => item.id === id)?.text.includes(quote), `${id}: ${quote}`);
      }
    }
    assert.doesNotMatch(String(waiting.answer), /approve by/);
  });

  test("says when the evidence does not hold it, takes other languages, and follows the runs", async () => {
    const work = executor("tell", `printf '{"complete_run":%s}\\n' "$(cat "$SVC_INPUT_FILE")"`);
    const jobId = await createJob(open, graph("told", [work], [], extended));
    await using one = disposable(await connected(jobId));
    const told = async (question: string, more: JsonObject = {}) =>
      use(one.client, "ask_job", { question, ...more });
    const inputs = {
      weather: "Es regnet in Gent seit gestern.",
      harvest: "今年の収穫は良かった。",
      north: { color: "red", crop: "barley" },
      south: { color: "blue", crop: "maize" },
    };
    const { run } = await completed(open, jobId, { inputs });
    assert.match(String((await told("Regnet es in Gent?")).answer), /Es regnet in Gent/);
    assert.match(String((await told("収穫は？")).answer), /収穫は良かった/);
    // No word of the first is there, and one of the second.
    for (const question of ["What is the capital of France?", "Who organised the barley festival?"]) {
      assert.deepEqual(await told(question), {
        answer: "The evidence of this job does not hold this.",
        answered: false,
        citations: [],
        truncated: false,
      });
    }
    assert.match(String((await told("Which crop has the south?")).answer), /^south\.crop: maize/);
    await completed(open, jobId, { inputs: { south: { crop: "wheat" } } });
    assert.match(String((await told("Which crop has the south?")).answer), /^south\.crop: wheat/);
    const earlier = await told("Which crop has the south?", { run_id: run.run_id! });
    assert.match(String(earlier.answer), /^south\.crop: maize/);
  });

  test("a follow-up looks first at what was cited before", async () => {
    const write = "cd \"$SVC_OUTPUT_DIR\"; echo 'The owner is Ada.' > a.txt; echo 'The owner is Bo.' > b.txt";
    const outputs = ["a.txt", "b.txt"];
    const jobId = await createJob(
      open,
      graph("files", [executor("in", write)], [], { ...extended, outputs }),
    );
    await completed(open, jobId);
    await using one = disposable(await connected(jobId));
    const items = itemsOf(await use(one.client, "get_job_context"));
    for (const owner of ["Ada", "Bo"]) {
      const cited = items.find(({ text }) => text.includes(owner))!.id;
      const { answer: told } = await use(one.client, "ask_job", {
        question: "Who is the owner?",
        earlier_ids: [cited],
      });
      assert.match(String(told), new RegExp(`^The owner is ${owner}\\.`));
    }
  });

  test("limits of size are stated where they cut", async () => {
    const script = `printf '{"complete_run":{"first":"apples","text":"%0${evidenceLimits.textCharsMax}d"}}\\n' 0`;
    const jobId = await createJob(open, graph("long", [executor("in", script)], [], extended));
    const { run } = await completed(open, jobId);
    await using one = disposable(await connected(jobId));
    const latest = await use(one.client, "get_latest_run");
    const limit = `the first ${evidenceLimits.textCharsMax} characters`;
    assert.deepEqual([latest.truncated, latest.cut], [true, [{ id: `${run.run_id}:result`, limit }]]);
    const told = await use(one.client, "ask_job", { question: "What is first?" });
    assert.equal(told.truncated, true);
    const longer = evidenceLimits.resultCharsMax;
    const all = `printf '{"complete_run":{"text":"%0${longer}d"}}\\n' 0`;
    const second = await createJob(open, graph("longer", [executor("in", all)], [], extended));
    await completed(open, second);
    await using two = disposable(await connected(second));
    const { cut, status } = await use(two.client, "get_latest_run");
    assert.equal(status, "completed");
    assert.match(JSON.stringify(cut), /:result","limit":"nothing, as it has \d+ characters"/);
    assert.match(String(told.answer), new RegExp(`^first: apples\n[\\s\\S]*${limit}`));
  });
});

describe("who may ask", () => {
  test("a token where there is one", async () => {
    const jobId = await createJobWithToken();
    const path = `${closed.api}/jobs/${jobId}/mcp`;
    const bearer = { authorization: `Bearer ${TOKEN}` };
    const client = new Client({ name: "test", version: "1" });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(path), { requestInit: { headers: bearer } }),
    );
    assert.equal((await use(client, "get_job_profile")).job_id, jobId);
    await client.close();
    const body = message("get_job_profile");
    assertProblem(await ask(closed, "POST", `/jobs/${jobId}/mcp`, { body }), 401, "unauthorized");
  });

  async function createJobWithToken(): Promise<string> {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const manifest = graph("guarded", [executor("work", "exit 0")], [], extended);
    const sent = await sendBundle(closed, await zipOf({ "manifest.json": manifest }), { headers });
    const made = await ask(closed, "POST", "/jobs", { body: { bundle_id: sent.body.bundle_id }, headers });
    return String(made.body.job_id);
  }

  test("no page of another site, and none that points a name of its own to this machine", async () => {
    const jobId = await createJob(open, graph("attacked", [executor("work", "exit 0")], [], extended));
    const { host } = new URL(open.url);
    const body = JSON.stringify(message("get_job_profile"));
    for (const [headers, status] of [
      [[`Host: ${host}`], 200],
      [[`Host: ${host}`, `Origin: http://${host}`], 200],
      [[`Host: ${host}`, "Origin: https://evil.example"], 403],
      [[`Host: ${host}`, "Origin: null"], 403],
      [["Host: evil.example"], 403],
      [["Host: evil.example", "Origin: http://evil.example"], 403],
      [[`Host: ${host}`, "Sec-Fetch-Site: cross-site"], 403],
    ] as const) {
      const lines = [
        `POST /api/v1/jobs/${jobId}/mcp HTTP/1.1`,
        ...headers,
        "Content-Type: application/json",
        `Content-Length: ${body.length}`,
        "Connection: close",
      ];
      const [told] = await exchange(open, `${lines.join("\r\n")}\r\n\r\n${body}`);
      assert.equal(told?.status, status, headers.join());
      assert.equal(told?.body.includes('"purpose"'), status === 200);
    }
  });
});
