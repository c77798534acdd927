// Sensors and modules as their configuration asks for them. Sentences in quotes are the contract's own, shortened.

import assert from "node:assert/strict";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { writeFolder } from "../support/bundle-files.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { aggregator, graph, module, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, type Run, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call, submitFolder } from "../support/runtime-api.ts";

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startRuntimeHere();
});
after(async () => {
  await program.stop();
  await gates.remove();
});

const failureOf = (job: Run) => (job.detail.job as JsonObject).failure as JsonObject;

describe("sensors", () => {
  const observing = (config: JsonObject) =>
    graph("senses", [sensor("s", config), aggregator("all")], [["s", "all"]]);

  test('"a timer (config.interval_ms)"; "done after config.complete_after", one observation per interval', async () => {
    const { result, of } = await run(program, observing({ interval_ms: 5, complete_after: 3 }));
    const messages = result.messages as readonly JsonObject[];
    assert.deepEqual(
      messages.map(({ observed }) => observed),
      [1, 2, 3],
    );
    const times = messages.map(({ fired_at }) => String(fired_at));
    assert.deepEqual(times, times.toSorted());
    assert.equal(of("sensor_observed", "s").length, 3);
    assert.equal(of("agent_completed", "s").length, 1);
  });

  test('"config.run_at": a time that has passed is observed at once', async () => {
    const { result } = await run(program, observing({ run_at: "2020-01-01T00:00:00Z" }));
    assert.equal(result.count, 1);
  });

  test('"config.run_at": a time ahead is not observed before it', async () => {
    const at = new Date(Date.now() + 60).toISOString();
    const { result } = await run(program, observing({ run_at: at }));
    assert.ok(String((result.last_message as JsonObject).fired_at) >= at);
  });

  test('"a file": its appearance is the observation, with path and size', async () => {
    const file = join(gates.folder, "awaited.txt");
    const jobId = await submit(program, observing({ file }));
    await happens(program, jobId, "agent_started");
    // Whole at once: a sensor that looks while it is written sees an empty one.
    await writeFile(`${file}.part`, "12345");
    await rename(`${file}.part`, file);
    const seen = (await ended(program, jobId)).result.last_message as JsonObject;
    assert.equal(seen.path, file);
    assert.equal(seen.size, 5);
  });

  test('"messages from outside"; "emits config.output_message_type (default sensor_ready)"', async () => {
    for (const config of [{}, { output_message_type: "approved" }] as JsonObject[]) {
      const jobId = await submit(program, observing(config));
      await call(program, "POST", path(jobId, "/messages"), { agent_id: "s", body: { ok: 1 } });
      const { result, of } = await ended(program, jobId);
      assert.deepEqual(result.messages, [{ ok: 1 }]);
      assert.equal(of("aggregator_received")[0]?.payload.type, config.output_message_type ?? "sensor_ready");
    }
  });

  test("a sensor that waits holds a batch job open", async () => {
    const jobId = await submit(program, observing({}));
    await happens(program, jobId, "agent_message_received");
    assert.equal(((await call(program, "GET", path(jobId))).job as JsonObject).status, "running");
    await call(program, "POST", path(jobId, "/cancel"));
  });
});

describe("modules", () => {
  let count = 0;
  /** Runs a bundle whose agent `m` is the module. */
  const withModule = async (
    source: string,
    config: JsonObject = {},
    bodies: readonly (number | JsonObject)[] = [1],
  ) => {
    const manifest = graph(
      "modular",
      [module("m", { module: "m.mjs", ...config }), aggregator("all")],
      [["m", "all"]],
      {
        initial_inputs: { m: bodies },
      },
    );
    const files = { "manifest.json": manifest, "payloads/m.mjs": source };
    const folder = await writeFolder(join(gates.folder, `module-${++count}`), files);
    return ended(program, await submitFolder(program, folder));
  };

  test('"handle(message, context) returning {emit?, state?, complete?}": messages, and state for the next', async () => {
    const { result } = await withModule(
      `export async function handle(message, context) {
        const sum = (context.agent_state.sum ?? 0) + message.body;
        return { emit: [{ type: "sum", body: { sum, agent: context.agent.agent_id } }], state: { sum } };
      }`,
      {},
      [1, 2, 3],
    );
    assert.deepEqual(
      result.messages,
      [1, 3, 6].map((sum) => ({ sum, agent: "m" })),
    );
  });

  test("complete ends the run with its value, and to addresses an agent without an edge", async () => {
    const completes = await withModule("export const handle = async () => ({ complete: { by: 'module' } });");
    assert.deepEqual(completes.result, { by: "module" });
    const addressed = await withModule(
      "export const handle = async () => ({ emit: [{ type: 'x', body: 'hi', to: 'all' }] });",
    );
    assert.deepEqual(addressed.result.messages, ["hi"]);
  });

  const broken: readonly [name: string, source: string, config: JsonObject, code: string][] = [
    ["throws", "export async function handle() { throw new Error('no luck'); }", {}, "module.threw"],
    ["exports no handle", "export const other = 1;", {}, "module.load_failed"],
    ["is no JavaScript", "export const = ;", {}, "module.load_failed"],
    ["is not there", "", { module: "missing.mjs" }, "module.load_failed"],
    [
      "returns what is no result",
      "export const handle = async () => ({ emit: 7 });",
      {},
      "module.invalid_output",
    ],
    [
      "never returns",
      "export async function handle() { for (;;); }",
      { timeout_seconds: 0.2 },
      "module.timeout",
    ],
  ];
  for (const [name, source, config, code] of broken) {
    test(`a module that ${name} fails its run with ${code}, and nothing else`, async () => {
      const job = await withModule(source, config);
      assert.equal(job.status, "failed");
      assert.equal(failureOf(job).code, code);
      assert.equal((await call(program, "GET", "/health")).status, "ok");
    });
  }
});
