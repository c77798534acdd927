// POST /jobs: what is accepted, what is refused, and with which words. Sentences in quotes are the
// specification's own, shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { aggregator, executor, graph, router } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call } from "../support/runtime-api.ts";

const BODY_BYTES_MAX = 100_000;
let program: Program;
before(async () => {
  program = await startRuntimeHere({ env: { SVC_BODY_MAX_BYTES: String(BODY_BYTES_MAX) } });
});
after(() => program.stop());

const minimal = (graphId: string) => graph(graphId, [router("start")]);

/** Posts a body as it is. */
async function post(body: string | Uint8Array<ArrayBuffer>, contentType = "application/json") {
  const answer = await fetch(`${program.api}/jobs`, {
    method: "POST",
    body,
    headers: { "content-type": contentType },
  });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as JsonObject };
}

const jobCount = async () => ((await call(program, "GET", "/jobs")).data as readonly unknown[]).length;

test('"201, object with id (form {graph_id}-{unique_suffix}) and status (pending)", and Location names the job', async () => {
  const { status, headers, body } = await post(JSON.stringify(minimal("first.graph_1")));
  assert.equal(status, 201);
  assert.match(String(body.id), /^first\.graph_1-[0-9a-z]{8,}$/);
  assert.equal(body.status, "pending");
  assert.equal(headers.get("location"), `/api/v1/jobs/${String(body.id)}`);
  assert.equal((await fetch(new URL(headers.get("location") ?? "", program.url))).status, 200);
});

test("two submissions of one manifest are two jobs", async () => {
  const [first, second] = await Promise.all([
    submit(program, minimal("twin")),
    submit(program, minimal("twin")),
  ]);
  assert.notEqual(first, second);
});

test("a job that was acknowledged is in the list and in its detail at once", async () => {
  const jobId = await submit(program, minimal("at-once"));
  const list = (await call(program, "GET", "/jobs")).data as readonly JsonObject[];
  assert.ok(list.some((job) => job.job_id === jobId));
});

test("a content type with a charset is JSON too", async () => {
  assert.equal(
    (await post(JSON.stringify(minimal("charset")), "application/json; charset=utf-8")).status,
    201,
  );
});

describe('"Invalid or missing JSON payload"', () => {
  const bad: readonly [name: string, body: string | Uint8Array<ArrayBuffer>][] = [
    ["an empty body", ""],
    ["blanks", "   "],
    ["an empty object", "{}"],
    ["no JSON", "manifest"],
    ["half an object", '{"manifest_version":"1.0"'],
    ["a trailing comma", '{"a":1,}'],
    ["an array", "[]"],
    ["an array of manifests", JSON.stringify([minimal("in-array")])],
    ["null", "null"],
    ["a number", "1"],
    ["a string", '"manifest"'],
    ["invalid UTF-8", Uint8Array.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
    ["UTF-16", Uint8Array.from(Buffer.from(JSON.stringify(minimal("utf-16")), "utf16le"))],
    ["two objects", "{}{}"],
  ];
  for (const [name, body] of bad) {
    test(`${name} is answered with 400 and that text`, async () => {
      const answer = await post(body);
      assert.equal(answer.status, 400);
      assert.deepEqual(answer.body, { error: "Invalid or missing JSON payload" });
    });
  }
});

describe('"400 with error text when the manifest is invalid", every problem at once, separated by "; "', () => {
  const refused = async (manifest: JsonObject) => {
    const before = await jobCount();
    const { status, body } = await post(JSON.stringify(manifest));
    assert.equal(status, 400);
    assert.deepEqual(Object.keys(body), ["error"]);
    const text = String(body.error);
    assert.ok(text.startsWith("Invalid manifest: "), text);
    assert.equal(await jobCount(), before);
    return text.slice("Invalid manifest: ".length).split("; ");
  };

  test("every required field that is missing is named", async () => {
    const problems = await refused({ metadata: {} });
    for (const field of ["manifest_version", "graph_id", "entrypoints", "nodes"]) {
      assert.ok(
        problems.some((problem) => problem.startsWith(field) && problem.includes("missing")),
        field,
      );
    }
    assert.equal(problems.length, 4);
  });

  test("two problems make the text of exactly two, in the manifest's order", async () => {
    const problems = await refused({ ...minimal("x"), manifest_version: "2.0", entrypoints: [] });
    assert.equal(problems.length, 2);
    assert.match(problems[0] ?? "", /manifest_version/);
    assert.match(problems[1] ?? "", /entrypoints/);
  });

  const bad: readonly [name: string, manifest: JsonObject, about: RegExp][] = [
    ["another manifest_version", { ...minimal("x"), manifest_version: "1.1" }, /manifest_version.*1\.1/],
    ["a manifest_version that is a number", { ...minimal("x"), manifest_version: 1 }, /manifest_version/],
    ["no nodes", { ...minimal("x"), nodes: [] }, /nodes is empty/],
    ["a duplicate node_id", graph("x", [router("a"), router("a")]), /nodes\[1\].*"a"/],
    ["an empty node_id", graph("x", [router("a"), router("")]), /nodes\[1\]/],
    ["an unknown agent_type", graph("x", [{ node_id: "a", agent_type: "wizard" }]), /"wizard".*router/],
    ["an edge to nowhere", graph("x", [router("a")], [["a", "b"]]), /edges\[0\].*"b"/],
    ["an edge from nowhere", graph("x", [router("a")], [["b", "a"]]), /edges\[0\].*"b"/],
    [
      "an entrypoint to nowhere",
      graph("x", [router("a")], [], { entrypoints: ["b"] }),
      /entrypoints\[0\].*"b"/,
    ],
    [
      "a bad placement_policy",
      graph("x", [router("a")], [], { policies: { placement_policy: "moon" } }),
      /placement_policy/,
    ],
    [
      "a bad failure_policy",
      graph("x", [router("a")], [], { policies: { failure_policy: "cry" } }),
      /failure_policy/,
    ],
    [
      "an executor without a command",
      graph("x", [{ node_id: "a", agent_type: "executor" }]),
      /command is missing/,
    ],
    ["a graph_id that leaves the URL", minimal("../../etc"), /graph_id/],
    ["a graph_id of dots", minimal(".."), /graph_id/],
    ["a graph_id in emoji", minimal("🎭"), /graph_id/],
    ["a graph_id of blanks", minimal("  "), /graph_id/],
  ];
  for (const [name, manifest, about] of bad) {
    test(`${name} is refused, and nothing is created`, async () => {
      const problems = await refused(manifest);
      assert.ok(
        problems.some((problem) => about.test(problem)),
        problems.join("\n"),
      );
    });
  }

  test("of a thousand problems the first 100 are named, and the others counted", async () => {
    const nodes = Array.from({ length: 1_000 }, (_, i) => ({ node_id: `n${i}`, agent_type: "no" }));
    const problems = await refused(graph("x", nodes));
    assert.equal(problems.length, 101);
    assert.match(problems.at(-1) ?? "", /900/);
  });
});

test('"a body of another content type" is answered with 415, and nothing is created', async () => {
  const before = await jobCount();
  for (const type of [
    "text/plain",
    "application/xml",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
  ]) {
    const { status, body } = await post(JSON.stringify(minimal("x")), type);
    assert.equal(status, 415, type);
    assert.deepEqual(Object.keys(body), ["error"]);
    assert.match(String(body.error), /application\/json/);
  }
  assert.equal(await jobCount(), before);
});

test('"over the body limit: 413, same shape"; a body of exactly the limit is read', async () => {
  const sized = (bytes: number) => {
    const empty = JSON.stringify(graph("sized", [router("r")], [], { metadata: { padding: "" } }));
    return empty.replace('"padding":""', `"padding":"${"x".repeat(bytes - empty.length)}"`);
  };
  assert.equal((await post(sized(BODY_BYTES_MAX))).status, 201);
  const over = await post(sized(BODY_BYTES_MAX + 1));
  assert.equal(over.status, 413);
  assert.deepEqual(Object.keys(over.body), ["error"]);
  assert.match(String(over.body.error), /SVC_BODY_MAX_BYTES/);
});

test('"fields nobody knows are kept and ignored"', async () => {
  const extra = { "x-team": { deep: [1, null] }, metadata: { any: "thing" } };
  const nodes = [{ ...router("r"), colour: "blue", tier: { cpu: 2 }, role: "front" }];
  assert.equal((await run(program, graph("extra", nodes, [], extra))).status, "completed");
});

test('"policies": what was asked for is in the job record', async () => {
  const policies = { placement_policy: "binpack", recovery_mode: "manual_recover" };
  const { detail } = await run(
    program,
    graph("policies", [router("r")], [], { policies, job_name: "A name ✓" }),
  );
  const job = detail.job as JsonObject;
  assert.equal(job.placement_policy, "binpack");
  assert.equal(job.recovery_policy, "manual_recover");
  assert.equal(job.job_name, "A name ✓");
});

describe('"initial_inputs: entrypoint -> list of message bodies"', () => {
  const collecting = (inputs: JsonObject | undefined, entrypoints = ["a", "b"]) =>
    graph(
      "inputs",
      [router("a"), router("b"), aggregator("all")],
      [
        ["a", "all"],
        ["b", "all"],
      ],
      {
        entrypoints,
        ...(inputs !== undefined && { initial_inputs: inputs }),
      },
    );
  const bodies = async (inputs?: JsonObject, entrypoints?: string[]) => {
    const { events, result } = await run(program, collecting(inputs, entrypoints));
    assert.equal(events.filter((event) => event.type.startsWith("job_")).length, 5);
    return result.messages;
  };

  test("every body of the list becomes a message", async () => {
    assert.deepEqual(await bodies({ a: [1, "two", null, { three: 3 }, [4]] }, ["a"]), [
      1,
      "two",
      null,
      { three: 3 },
      [4],
    ]);
  });

  test('"a bare value is a list of one"', async () => {
    assert.deepEqual(await bodies({ a: { one: 1 } }, ["a"]), [{ one: 1 }]);
  });

  test('"an entrypoint without inputs gets one init with body {}"', async () => {
    assert.deepEqual(await bodies({ b: [1, 2] }), [{}, 1, 2]);
    assert.deepEqual(await bodies(), [{}, {}]);
  });

  test("initial inputs arrive with the type init", async () => {
    const { of } = await run(program, collecting({ a: ["x"] }));
    assert.deepEqual(
      of("agent_message_received", "a").map((event) => [event.payload.type, event.payload.from]),
      [["init", null]],
    );
  });
});

test("a job that cannot be run at all is accepted and fails with a failure that says what to do", async () => {
  const command = executor("lost", ["/no/such/program-of-any-kind"]);
  const { status, detail } = await ended(program, await submit(program, graph("lost", [command])));
  assert.equal(status, "failed");
  const failure = (detail.job as JsonObject).failure as JsonObject;
  assert.equal(failure.schema_version, "svc.error.v1");
  assert.equal(failure.code, "executor.spawn_failed");
  assert.equal(typeof failure.remediation, "string");
});
