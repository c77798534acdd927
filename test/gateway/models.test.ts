// Models over HTTP: registered, installed from each kind of source with its faults, used by runs, and removed.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  pathsOf,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { ggufFile, safetensorsFile, text, tinyLlama, tinyTensors } from "../support/model-files.ts";
import { fileServer, ollamaServer } from "../support/model-servers.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

const sha256Of = (content: Buffer | string) => createHash("sha256").update(content).digest("hex");
const tiny = ggufFile(tinyLlama, tinyTensors);
const other = ggufFile({ ...tinyLlama, "general.name": text("Other") }, tinyTensors);
/** More than a piece of a download. */
const large = ggufFile({ ...tinyLlama, padding: text("x".repeat(5_000_000)) }, tinyTensors);

let program: Program;
let gates: Gates;
let folder = "";
before(async () => {
  [program, gates] = await Promise.all([startGatewayHere({}), makeGates()]);
  folder = await mkdtemp(join(tmpdir(), "troupe-models-"));
});
after(async () => {
  await program.stop();
  await gates.remove();
  await rm(folder, { recursive: true, force: true });
});

const fileOf = async (name: string, content: Buffer): Promise<string> => {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
};
const pathTo = (id: string, action = "") => `/models/${encodeURIComponent(id)}${action}`;
const register = (body: JsonObject, headers: Record<string, string> = {}) =>
  ask(program, "POST", "/models", { body, headers });
const registered = async (body: JsonObject): Promise<JsonObject> => {
  const answer = await register(body);
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
};
const get = (id: string) => ask(program, "GET", pathTo(id));
const etagOf = ({ headers }: Answer) => headers.get("etag") ?? "";
/** Begins an operation of a model, and waits for its end. */
async function operated(id: string, action: string, body: JsonObject = {}): Promise<JsonObject> {
  const answer = await ask(program, "POST", pathTo(id, `/${action}`), { body });
  assert.equal(answer.status, 202, answer.text);
  const path = answer.headers.get("location") ?? "";
  return until(`${action} of ${id} has ended`, async () => {
    const { body: operation } = await ask(program, "GET", path);
    return operation.finished_at !== null && operation;
  });
}
async function installed(id: string, body: JsonObject = {}): Promise<JsonObject> {
  const operation = await operated(id, "install", body);
  assert.equal(operation.status, "completed", JSON.stringify(operation.error));
  return (await get(id)).body;
}
const placeOf = (id: string, sha256: string) => join(program.home, "models", id, sha256);
const failureOf = ({ status, error }: JsonObject) => [status, (error as JsonObject | null)?.code];

describe("a registration", () => {
  test("is answered with its location and ETag, is listed, and the same request is made once", async () => {
    const body = { model_id: "reg/a b", source: { file: "/nowhere/a.gguf" }, license: "mit" };
    const key = { "idempotency-key": "models-1" };
    const answer = await register(body, key);
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get("location"), "/api/v1/models/reg%2Fa%20b");
    const shown = await get("reg/a b");
    assert.deepEqual(shown.body, answer.body);
    assert.equal(etagOf(shown), etagOf(answer));
    assert.deepEqual(
      [shown.body.state, shown.body.name, shown.body.size, shown.body.details, shown.body.license],
      ["registered", "reg/a b", null, null, "mit"],
    );
    assert.equal((await register(body, key)).headers.get("idempotency-replayed"), "true");
    assertProblem(await register(body), 409, "conflict");
    const ids = (await walk(program, "/models", 1)).map(({ model_id }) => model_id);
    assert.ok(ids.includes("reg/a b"));
    assert.deepEqual(ids, ids.toSorted());
    assertProblem(await get("nowhere"), 404, "model_not_found");
  });

  test("is called after its source", async () => {
    const ids = [];
    for (const source of [
      { file: "/models/Qwen3-4B.gguf" },
      { folder: "/models/snapshots/phi/" },
      { ollama: { base_url: "http://127.0.0.1:1", model: "llama3.2:1b" } },
    ])
      ids.push((await registered({ source })).model_id);
    assert.deepEqual(ids, ["Qwen3-4B", "phi", "llama3.2:1b"]);
  });

  test("needs a source that can be one: every mistake has its place", async () => {
    const paths = async (source: JsonObject) => {
      const answer = await register({ model_id: "wrong", source });
      assertProblem(answer, 422, "validation_failed");
      return pathsOf(answer);
    };
    const sha256 = "a".repeat(64);
    assert.deepEqual(await paths({}), ["/source"]);
    assert.deepEqual(await paths({ file: "/a", folder: "/b" }), ["/source"]);
    assert.deepEqual(await paths({ file: "a.gguf" }), ["/source/file"]);
    assert.deepEqual(await paths({ file: 1, sha: "x" }), ["/source/sha", "/source/file"]);
    assert.deepEqual(await paths({ url: "https://a/b" }), ["/source/sha256"]);
    assert.deepEqual(await paths({ url: "http://example.com/b", sha256 }), ["/source/url"]);
    assert.deepEqual(await paths({ url: "https://u:p@example.com/b", sha256 }), ["/source/url"]);
    assert.deepEqual(await paths({ url: "https://a/b", sha256: "ABC" }), ["/source/sha256"]);
    assert.deepEqual(await paths({ payload: "../x", blueprint_id: "b" }), ["/source/payload"]);
    assert.deepEqual(await paths({ ollama: { base_url: "file:///x" } }), ["/source/ollama/model"]);
    assert.deepEqual(await paths({ openai: { base_url: "file:///x", model: "m" } }), [
      "/source/openai/base_url",
    ]);
    assertProblem(await register({ model_id: "a\nb", source: { file: "/a" } }), 422, "validation_failed");
  });

  test("shows no secret, and keeps it under its mask", async () => {
    const openai = { base_url: "http://127.0.0.1:1/v1", model: "gpt", api_key: "sk-very-secret" };
    const made = await register({ model_id: "hosted", source: { openai } });
    assert.doesNotMatch(made.text, /very-secret/);
    const masked = (made.body.source as { openai: JsonObject }).openai;
    assert.equal(masked.api_key, "********");
    const patched = await ask(program, "PATCH", pathTo("hosted"), {
      body: { source: { openai: { ...masked, model: "gpt-2" } } },
      headers: { "if-match": etagOf(made) },
    });
    assert.equal(patched.status, 200, patched.text);
    assert.equal((patched.body.source as { openai: JsonObject }).openai.model, "gpt-2");
    const unknown = { openai: { base_url: "http://127.0.0.1:1", model: "m", api_key: "********" } };
    assertProblem(await register({ model_id: "masked", source: unknown }), 422, "validation_failed");
    assertProblem(await ask(program, "POST", pathTo("hosted", "/install")), 409, "invalid_transition");
  });

  test("changes and goes with If-Match alone", async () => {
    const made = await register({ model_id: "changing", source: { file: "/a.gguf" } });
    const change = (headers: Record<string, string>) =>
      ask(program, "PATCH", pathTo("changing"), { body: { name: "New", context: null }, headers });
    assertProblem(await change({}), 428, "precondition_required");
    const changed = await change({ "if-match": etagOf(made) });
    assert.deepEqual([changed.body.name, changed.body.revision], ["New", 2]);
    assertProblem(await change({ "if-match": etagOf(made) }), 412, "precondition_failed");
    const remove = (etag: string) =>
      ask(program, "DELETE", pathTo("changing"), { headers: { "if-match": etag } });
    assertProblem(await remove(etagOf(made)), 412, "precondition_failed");
    assert.equal((await remove(etagOf(changed))).status, 204);
    assertProblem(await get("changing"), 404, "model_not_found");
  });
});

describe("an installation", () => {
  test("of a file is a whole, read-only copy that says what it is; it goes with its removal", async () => {
    const sha256 = sha256Of(tiny);
    await registered({ model_id: "tiny", source: { file: await fileOf("tiny.gguf", tiny) } });
    const model = await installed("tiny");
    assert.deepEqual(
      [model.state, model.sha256, model.size, model.format],
      ["installed", sha256, tiny.length, "gguf"],
    );
    assert.equal((model.details as JsonObject).architecture, "llama");
    assert.equal((await stat(placeOf("tiny", sha256))).mode & 0o777, 0o400);
    assert.ok((await readFile(placeOf("tiny", sha256))).equals(tiny));
    const remove = { headers: { "if-match": etagOf(await get("tiny")) } };
    assertProblem(await ask(program, "DELETE", pathTo("tiny"), remove), 409, "model_in_use");
    const { preview } = (await operated("tiny", "remove", { dry_run: true })).result as {
      preview: JsonObject;
    };
    const [item] = preview.resources as [JsonObject];
    assert.deepEqual([item.kind, item.id, item.bytes, item.action], ["model", "tiny", tiny.length, "delete"]);
    const { removed } = (await operated("tiny", "remove")).result as { readonly removed: JsonObject };
    assert.equal(removed.bytes_freed, tiny.length);
    assert.ok(!existsSync(placeOf("tiny", sha256)));
    assert.equal((await get("tiny")).body.state, "registered");
    assert.equal((await ask(program, "DELETE", pathTo("tiny"), remove)).status, 204);
  });

  test("takes no file that is no model, unless its hash was declared", async () => {
    const content = Buffer.from("root:x:0:0");
    const file = await fileOf("passwd", content);
    await registered({ model_id: "passwd", source: { file } });
    assert.deepEqual(failureOf(await operated("passwd", "install")), ["failed", "model_failed"]);
    assert.deepEqual(
      [(await get("passwd")).body.state, existsSync(placeOf("passwd", sha256Of(content)))],
      ["failed", false],
    );
    await registered({ model_id: "onnx", source: { file }, sha256: sha256Of(content) });
    assert.equal((await installed("onnx")).format, null);
    await registered({ model_id: "absent", source: { file: join(folder, "absent") } });
    assert.deepEqual(failureOf(await operated("absent", "install")), ["failed", "model_failed"]);
  });

  test("of a folder has its model files, also by way of links, under the hash of their list", async () => {
    const source = join(folder, "phi");
    await mkdir(join(source, "nested"), { recursive: true });
    const files = {
      "config.json": Buffer.from("{}"),
      "model.safetensors": safetensorsFile({ a: { dtype: "F32", shape: [2], data_offsets: [0, 8] } }, 8),
    };
    for (const [name, content] of Object.entries(files)) await writeFile(join(source, name), content);
    await writeFile(join(source, "run.py"), "import os");
    await registered({ model_id: "phi-folder", source: { folder: source } });
    const model = await installed("phi-folder");
    const list = Object.entries(files).map(([name, content]) => `${sha256Of(content)}  ${name}\n`);
    assert.deepEqual([model.sha256, model.format], [sha256Of(list.join("")), "safetensors"]);
    const place = placeOf("phi-folder", String(model.sha256));
    assert.deepEqual(
      [existsSync(join(place, "config.json")), existsSync(join(place, "run.py"))],
      [true, false],
    );
  });

  test("of a download goes on where it was cut, waits as it is told, and follows safe redirects", async () => {
    const sha256 = sha256Of(large);
    await using server = await fileServer(large, [
      { status: 503, retryAfter: 0 },
      { redirectTo: "/elsewhere" },
      { cutAfter: 2_000_000 },
      { status: 429, retryAfter: 0 },
    ]);
    const source = { url: `${server.url}/large.gguf`, sha256, token: "hf_secret" };
    const { model_id: id } = await registered({ source });
    const operation = await operated(String(id), "install");
    assert.equal(operation.status, "completed", JSON.stringify(operation.error));
    assert.ok((await readFile(placeOf("large", sha256))).equals(large));
    const rests = server.asked.filter((line) => /bytes=[1-9]/.test(line));
    assert.ok(rests.length > 0, server.asked.join("\n"));
    assert.deepEqual(new Set(server.keys), new Set(["Bearer hf_secret"]));
    const [place] = await walk(program, "/models/large/installations");
    assert.equal(place?.state, "installed");
  });

  test("of a download that is another content, or is refused, fails and leaves nothing", async () => {
    await using server = await fileServer(tiny, [{ status: 404 }, { redirectTo: "http://example.com/x" }]);
    const source = { url: `${server.url}/x.gguf`, sha256: "0".repeat(64) };
    await registered({ model_id: "mismatch", source });
    for (const why of [/HTTP 404/, /neither https nor of this machine/, /has the SHA-256/]) {
      const operation = await operated("mismatch", "install");
      assert.deepEqual(failureOf(operation), ["failed", "model_failed"]);
      assert.match(String((operation.error as JsonObject).detail), why);
    }
    assert.ok(!existsSync(placeOf("mismatch", sha256Of(tiny))));
    const [one] = (await get("mismatch")).body.installations as [JsonObject];
    assert.deepEqual(
      [one.state, one.sha256, (one.error as JsonObject).code],
      ["failed", null, "model_failed"],
    );
  });

  test("of content that another model has fetches nothing", async () => {
    await using server = await fileServer(other);
    for (const id of ["twin-a", "twin-b"])
      await registered({ model_id: id, source: { url: `${server.url}/o.gguf`, sha256: sha256Of(other) } });
    await installed("twin-a");
    await installed("twin-b");
    assert.equal(server.asked.length, 1);
    const [a, b] = await Promise.all(["twin-a", "twin-b"].map((id) => stat(placeOf(id, sha256Of(other)))));
    assert.equal(a?.ino, b?.ino);
  });

  test("by an Ollama-compatible server is pulled, shown and deleted there", async () => {
    await using server = await ollamaServer();
    const source = (model: string) => ({ ollama: { base_url: server.url, model } });
    await registered({ model_id: "pulled", source: source("llama3") });
    const look = () => ask(program, "POST", pathTo("pulled", "/validate"), { body: {} });
    assert.equal((await look()).body.valid, false);
    const model = await installed("pulled");
    assert.deepEqual(
      [model.state, model.size, model.quantisation, model.context, model.license, model.parameters],
      ["installed", 100, "Q4_K_M", 4096, "Apache License", 8],
    );
    assert.equal((await look()).body.valid, true);
    // Runs that require a model read its file, and there is none.
    assert.equal((model.installations as [JsonObject])[0].sha256, null);
    const { removed } = (await operated("pulled", "remove")).result as { readonly removed: JsonObject };
    assert.equal(removed.bytes_freed, 100);
    assert.deepEqual([...server.models], []);
    await registered({ model_id: "absent-there", source: source("absent") });
    const failed = await operated("absent-there", "install");
    assert.match(String((failed.error as JsonObject).detail), /file does not exist/);
  });

  test("is one at a time", async () => {
    await using server = await fileServer(tiny, [{ hangAfter: 100 }]);
    await registered({ model_id: "slow", source: { url: `${server.url}/s.gguf`, sha256: sha256Of(tiny) } });
    await call(program, "POST", pathTo("slow", "/install"));
    await until("the download has begun", () => server.asked.length === 1);
    assertProblem(await ask(program, "POST", pathTo("slow", "/install")), 409, "model_busy");
    const etag = etagOf(await get("slow"));
    const remove = { headers: { "if-match": etag } };
    assertProblem(await ask(program, "DELETE", pathTo("slow"), remove), 409, "model_busy");
  });

  test("that is pinned is neither updated nor removed", async () => {
    const file = await fileOf("pinned.gguf", tiny);
    await registered({ model_id: "pinned", source: { file } });
    await installed("pinned");
    const [{ installation_id: id }] = (await get("pinned")).body.installations as [JsonObject];
    const path = pathTo("pinned", `/installations/${id}`);
    const change = async (pinned: boolean) =>
      ask(program, "PATCH", path, {
        body: { pinned },
        headers: { "if-match": etagOf(await ask(program, "GET", path)) },
      });
    assert.equal((await change(true)).body.pinned, true);
    assertProblem(await ask(program, "POST", pathTo("pinned", "/update")), 409, "conflict");
    assertProblem(await ask(program, "POST", pathTo("pinned", "/remove")), 409, "conflict");
    const remove = async () =>
      ask(program, "DELETE", path, { headers: { "if-match": etagOf(await ask(program, "GET", path)) } });
    assertProblem(await remove(), 409, "conflict");
    await change(false);
    assertProblem(await ask(program, "DELETE", path), 428, "precondition_required");
    assert.equal((await remove()).status, 204);
    assert.ok(!existsSync(placeOf("pinned", sha256Of(tiny))));
  });
});

describe("a run", () => {
  const needs = (models: readonly string[], command: string) =>
    graph("asks", [executor("a", command)], [], { requirements: { models } });

  test("is told of a model that is missing, and with which command it comes", async () => {
    const jobId = await createJob(program, needs(["never"], "true"));
    const answer = await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {} });
    assertProblem(answer, 409, "requirements_not_met");
    assert.match(answer.text, /troupe models install never/);
  });

  test("reads what is installed; an update and a removal leave it what it has", async () => {
    const file = await fileOf("read.gguf", tiny);
    await registered({ model_id: "read", source: { file } });
    await installed("read");
    const gate = gates.pipe("reads");
    const command = `cat ${gate} && sha256sum < "$SVC_MODELS_DIR/read" > "$SVC_OUTPUT_DIR/sum"`;
    const runId = await startRun(program, await createJob(program, needs(["read"], command)));
    await until(
      "the run is running",
      async () => (await call(program, "GET", `/runs/${runId}`)).status === "running",
    );
    await writeFile(file, other);
    assert.equal((await operated("read", "update")).status, "completed");
    assert.equal((await get("read")).body.sha256, sha256Of(other));
    assert.ok(existsSync(placeOf("read", sha256Of(tiny))));
    await gates.open(gate);
    assert.equal((await ended(program, runId)).run.status, "completed");
    const files = (await call(program, "GET", `/runs/${runId}/artifacts`)).items as readonly JsonObject[];
    const found = files.find(({ name }) => name === "sum") as { readonly url: string } | undefined;
    const sum = await ask(program, "GET", String(found?.url));
    assert.match(sum.text, new RegExp(sha256Of(tiny)));

    const second = gates.pipe("reads-again");
    const job = await createJob(program, needs(["read"], `cat ${second}`));
    const reading = await startRun(program, job);
    await until(
      "it is running",
      async () => (await call(program, "GET", `/runs/${reading}`)).status === "running",
    );
    const refused = await operated("read", "remove");
    assert.deepEqual(failureOf(refused), ["failed", "model_in_use"]);
    assert.match(String((refused.error as JsonObject).detail), new RegExp(reading));
    assert.equal((await operated("read", "remove", { force: true })).status, "completed");
    assert.ok(!existsSync(placeOf("read", sha256Of(other))));
    await gates.open(second);
  });
});

test("a look at a model says in words whether it runs here, and changes nothing", async () => {
  await registered({ model_id: "looked", source: { file: await fileOf("looked.gguf", tiny) } });
  const look = (body: JsonObject = {}) => ask(program, "POST", pathTo("looked", "/validate"), { body });
  const { body } = await look();
  assert.deepEqual([body.valid, body.format, body.fit], [true, "gguf", "fits"]);
  assert.match(String(body.verdict), /It runs here/);
  await fileOf("looked.gguf", tiny.subarray(0, 100));
  const broken = (await look()).body;
  assert.deepEqual([broken.valid, broken.fit], [false, null]);
  const url = { url: "https://example.com/a.gguf", sha256: "1".repeat(64) };
  await registered({ model_id: "unseen", source: url });
  assertProblem(await ask(program, "POST", pathTo("unseen", "/validate"), { body: {} }), 409, "conflict");
});
