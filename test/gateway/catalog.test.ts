// The catalog through the gateway: GET /blueprints, GET /blueprints/{id}, and the schemas for editors. Sentences in
// quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Files, writeFolder } from "../support/bundle-files.ts";
import { ask, assertProblem, call, completed, createJob, pathsOf, walk } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let root: string;
let program: Program;

const secret = "sk-not-to-be-seen-anywhere";

const report: Files = {
  "manifest.json": {
    ...graph("report", [executor("write", ["true"], { upload_path: "writer", workdir: "writer" })]),
    metadata: { name: "Not this one", version: "2.1" },
    input_schema: { type: "object", properties: { year: { type: "integer" } } },
    config_schema: { type: "object" },
    requirements: { commands: ["sh"], memory_bytes: 1_000_000, services: ["index"], comands: ["x"] },
    resources: [{ name: "tables", title: "Tables", from: "tables", prepare: ["sh", "make.sh"] }],
    models: [{ model_id: "tiny", path: "/models/tiny.gguf" }],
  },
  "config/default.json": {
    identity: { blueprint_id: "yearly-report", name: "Yearly report", category: "reports", tags: ["CSV"] },
    store: { api_key: secret, url: "http://example.org" },
    local_inputs: {
      folders: [
        { config_path: "in", payload_path: "writer/in", runtime_path: "in", allowed_extensions: [".CSV"] },
      ],
    },
    web_ui: { enabled: true, output: { title: "Report" } },
  },
  "payloads/writer/x": "x",
  "payloads/tables/make.sh": "",
};

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gateway-catalog-"));
  const first = join(root, "first");
  const second = join(root, "second");
  await writeFolder(join(first, "Report (new)"), report);
  await writeFolder(join(first, "broken"), {
    "manifest.json": { ...graph("broken", [router("in")]), nodes: [], requirements: { cpu_cores: "many" } },
    "config/default.json": "{ no",
  });
  await writeFolder(join(second, "one"), { "manifest.json": graph("one", [router("in")]) });
  await writeFolder(join(second, "two"), {
    "manifest.json": { ...graph("two", [router("in")]), metadata: { blueprint_id: "one" } },
  });
  await writeFolder(join(second, "left-out"), { "manifest.json": graph("left-out", [router("in")]) });
  for (let i = 0; i < 5; i++) {
    const name = `many-${i}`;
    await writeFolder(join(root, "third", name), { "manifest.json": graph(name, [router("in")]) });
  }
  await symlink("/etc", join(first, "etc"));
  await writeFile(
    join(second, "index.json"),
    JSON.stringify({ blueprints: ["two", { path: "one" }, "../first"] }),
  );
  const catalog = [first, second, join(root, "third"), join(root, "nowhere")].join(":");
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog } });
});
after(async () => {
  await program.stop();
  await rm(root, { recursive: true });
});

const ids = (items: readonly JsonObject[]) => items.map(({ blueprint_id: id }) => id);

describe("the list", () => {
  test('"Discover catalog blueprints": all of them, in the order of their ids, broken ones too', async () => {
    const items = await walk(program, "/blueprints");
    assert.deepEqual(
      items.map(({ blueprint_id: id, state }) => `${id} ${state}`),
      [
        "broken broken",
        "many-0 available",
        "many-1 available",
        "many-2 available",
        "many-3 available",
        "many-4 available",
        "one available",
        "yearly-report available",
      ],
    );
    assert.deepEqual(items.at(-1), {
      blueprint_id: "yearly-report",
      name: "Yearly report",
      description: "",
      version: "2.1",
      category: "reports",
      tags: ["CSV"],
      state: "available",
      modified: false,
      web_ui: true,
      warning_count: 1,
    });
  });

  test("its pages hold every blueprint once", async () => {
    assert.deepEqual(ids(await walk(program, "/blueprints", 3)), ids(await walk(program, "/blueprints")));
    const first = await call(program, "GET", "/blueprints?page_size=2");
    const token = encodeURIComponent(String(first.next_page_token));
    assertProblem(
      await ask(program, "GET", `/blueprints?q=one&page_token=${token}`),
      400,
      "invalid_page_token",
    );
  });

  test("it is filtered by category, state and text", async () => {
    assert.deepEqual(ids(await walk(program, "/blueprints?category=reports")), ["yearly-report"]);
    assert.deepEqual(ids(await walk(program, "/blueprints?q=csv")), ["yearly-report"]);
    assert.deepEqual(ids(await walk(program, "/blueprints?q=MANY&state=available", 2)).length, 5);
    assert.deepEqual(ids(await walk(program, "/blueprints?state=broken")), ["broken"]);
    assert.deepEqual(await walk(program, "/blueprints?q=nothing%20like%20it"), []);
    const wrong = await ask(program, "GET", "/blueprints?state=gone&size=1");
    assert.deepEqual(pathsOf(wrong).toSorted(), ["size", "state"]);
    assertProblem(wrong, 400, "invalid_parameter");
  });
});

describe("one blueprint", () => {
  test("has everything that its package says, with secrets masked", async () => {
    const answer = await ask(program, "GET", "/blueprints/yearly-report");
    assert.equal(answer.status, 200);
    assert.ok(!answer.text.includes(secret));
    assert.ok(!answer.text.includes(root), "no place of this machine");
    const { body } = answer;
    assert.equal(body.place, "first/Report (new)");
    assert.deepEqual(body.input_schema, { type: "object", properties: { year: { type: "integer" } } });
    assert.deepEqual((body.default_configuration as JsonObject).store, {
      api_key: "********",
      url: "http://example.org",
    });
    assert.deepEqual(body.requirements, {
      commands: ["sh"],
      environment: [],
      platforms: [],
      cpu_cores: null,
      memory_bytes: 1_000_000,
      disk_bytes: null,
      pools: {},
      models: [],
      services: [{ name: "index", tags: [], node: null }],
    });
    assert.deepEqual(body.resources, [
      { name: "tables", title: "Tables", from: "tables", prepare: ["sh", "make.sh"], timeout_seconds: 600 },
    ]);
    assert.deepEqual(body.models, [{ model_id: "tiny", path: "/models/tiny.gguf", sha256: null }]);
    assert.deepEqual(body.local_inputs, [
      {
        config_path: "in",
        payload_path: "writer/in",
        runtime_path: "in",
        allowed_extensions: [".csv"],
        linked_config_paths: [],
      },
    ]);
    assert.deepEqual(
      [body.owns, body.errors, body.jobs, body.operation_id, body.added_at],
      [[], [], 0, null, null],
    );
    const [warning] = body.warnings as readonly JsonObject[];
    assert.equal(warning?.path, "/requirements/comands");
    assert.match(String(warning?.message), /did you mean "commands"/);
    assert.deepEqual((body.links as JsonObject).additions, "/api/v1/blueprints/yearly-report/additions");
  });

  test("that is broken tells all its mistakes at once", async () => {
    const { body } = await ask(program, "GET", "/blueprints/broken");
    assert.equal(body.state, "broken");
    assert.deepEqual(
      (body.errors as readonly JsonObject[]).map(({ path, code }) => `${path} ${code}`),
      ["/config/default.json invalid_json", "/nodes empty", "/requirements/cpu_cores wrong_type"],
    );
    assert.deepEqual([body.requirements, body.default_configuration, body.local_inputs], [null, {}, []]);
  });

  test("that shares its id with another is the first in the index, and warns of the other", async () => {
    const { body } = await ask(program, "GET", "/blueprints/one");
    assert.equal(body.place, "second/two");
    const [warning] = body.warnings as readonly JsonObject[];
    assert.match(String(warning?.message), /"second\/one"/);
  });

  test("that is nobody's is not found", async () => {
    assertProblem(await ask(program, "GET", "/blueprints/left-out"), 404, "blueprint_not_found");
    assertProblem(await ask(program, "GET", "/blueprints/..%2F..%2Fetc"), 404, "blueprint_not_found");
  });
});

describe("the schemas for editors", () => {
  test("are JSON Schemas, cacheable, and answered with 304 to who has them", async () => {
    for (const name of ["manifest.json", "config.json", "index.json"]) {
      const answer = await fetch(`${program.url}/schemas/${name}`);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get("content-type"), "application/schema+json; charset=utf-8");
      assert.match(answer.headers.get("cache-control") ?? "", /max-age=\d+/);
      const schema = (await answer.json()) as JsonObject;
      assert.equal(schema.$schema, "https://json-schema.org/draft/2020-12/schema");
      const options = { strict: false, formats: { regex: true as const } };
      assert.equal(typeof new Ajv2020(options).compile(schema), "function");
      const etag = answer.headers.get("etag") ?? "";
      const again = await fetch(answer.url, { headers: { "if-none-match": etag } });
      assert.equal(again.status, 304);
    }
    assert.equal((await fetch(`${program.url}/schemas/other.json`)).status, 404);
  });

  test("are named in manifests, which run all the same", async () => {
    const manifest = { $schema: `${program.url}/schemas/manifest.json`, ...graph("named", [router("in")]) };
    await completed(program, await createJob(program, manifest));
  });
});

test("the doctor tells what is wrong with the catalog's folders, and which blueprints are broken", async () => {
  const { checks } = await call(program, "GET", "/runtime/doctor");
  const found = (checks as readonly JsonObject[]).find(({ name }) => name === "catalog");
  assert.equal(found?.status, "warn");
  for (const told of ["8 blueprints", '"nowhere"', "blueprints[2]", '"etc"', "1 broken: broken"]) {
    assert.ok(String(found?.text).includes(told), `${told} in ${found?.text}`);
  }
  assert.ok(!String(found?.text).includes(root));
});

test("with an API token the catalog asks for it, and the schemas, which editors read, do not", async () => {
  await using locked = await startGatewayHere({ env: { SVC_API_TOKEN: "a-token-of-enough-characters" } });
  assertProblem(await ask(locked, "GET", "/blueprints"), 401, "unauthorized");
  assert.equal((await fetch(`${locked.url}/schemas/manifest.json`)).status, 200);
  const headers = { authorization: "Bearer a-token-of-enough-characters" };
  assert.equal((await fetch(`${locked.url}/schemas/manifest.json`, { headers })).status, 200);
  const { body } = await ask(locked, "GET", "/blueprints", { headers });
  const shipped = ids(body.items as readonly JsonObject[]);
  assert.ok(shipped.includes("document-digest"), "the examples are the catalog where nobody says otherwise");
  for (const { state } of body.items as readonly JsonObject[]) assert.equal(state, "available");
});
