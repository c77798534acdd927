// Executors as their configuration asks for them, and the pools they share. Sentences in quotes are the contract's
// own, shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { aggregator, answer, executor, graph, router, sensor } from "../support/graphs.ts";
import { ended, happens, path, type Run, run, submit } from "../support/job-watch.ts";
import { type Program, startProgram } from "../support/program.ts";
import { call } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startProgram({
    env: {
      SVC_EXECUTOR_POOL_CAPACITIES: "default=4,wide=4,one=1",
      SVC_NODE_LABELS: "zone=a,disk=ssd",
      PASSED: "outside",
      KEPT_BACK: "private",
    },
  });
});
after(async () => {
  await program.stop();
  await gates.remove();
});

const failureOf = (job: Run) => (job.detail.job as JsonObject).failure as JsonObject;

describe("executors", () => {
  test('"emits executor_result with body {agent_id, sandbox, input}", every field', async () => {
    const nodes = [executor("work", "echo out; echo err >&2"), aggregator("all")];
    const { result, of } = await run(
      program,
      graph("result", nodes, [["work", "all"]], { initial_inputs: { work: [{ n: 1 }] } }),
    );
    const body = result.last_message as JsonObject;
    const { sandbox_name, lease, duration_ms, ...sandbox } = body.sandbox as JsonObject;
    assert.deepEqual(
      { ...body, sandbox },
      {
        agent_id: "work",
        input: { n: 1 },
        sandbox: { exit_code: 0, stdout: "out\n", stderr: "err\n", attempts: 1 },
      },
    );
    assert.equal(sandbox_name, of("sandbox_job_completed")[0]?.payload.sandbox_name);
    assert.deepEqual({ ...(lease as JsonObject), lease_id: "" }, { lease_id: "", pool: "default", slots: 1 });
    assert.equal(typeof duration_ms, "number");
    assert.equal(of("aggregator_received")[0]?.payload.type, "executor_result");
  });

  test('"output_message_type; null: nothing"', async () => {
    const named = await run(
      program,
      graph(
        "named",
        [executor("w", "true", { output_message_type: "made" }), aggregator("all")],
        [["w", "all", "made"]],
      ),
    );
    assert.equal(named.result.count, 1);
    const silent = await run(
      program,
      graph(
        "silent",
        [executor("w", "true", { output_message_type: null }), aggregator("all")],
        [["w", "all"]],
      ),
    );
    assert.deepEqual(silent.result, { outputs: {} });
  });

  test('"a list: no shell; a string: through the shell"', async () => {
    const text = "$HOME `id` ; exit 3 | *";
    const listed = await run(
      program,
      graph("list", [executor("w", ["printf", "%s", text]), aggregator("all")], [["w", "all"]]),
    );
    const stdout = (job: Run) => ((job.result.last_message as JsonObject).sandbox as JsonObject).stdout;
    assert.equal(stdout(listed), text);
    const shell = await run(
      program,
      graph("shell", [executor("w", "printf %s $((40 + 2))"), aggregator("all")], [["w", "all"]]),
    );
    assert.equal(stdout(shell), "42");
  });

  test('"max_attempts; retry_backoff_ms, doubling, with jitter": visible in events, attempts in the result', async () => {
    const command = `test "$SVC_ATTEMPT" -ge 3 || exit 7`;
    const nodes = [executor("w", command, { max_attempts: 5, retry_backoff_ms: 20 }), aggregator("all")];
    const { status, result, of, types } = await run(program, graph("retries", nodes, [["w", "all"]]));
    assert.equal(status, "completed");
    assert.equal(((result.last_message as JsonObject).sandbox as JsonObject).attempts, 3);
    const scheduled = of("sandbox_job_retry_scheduled", "w").map(({ payload }) => payload);
    assert.deepEqual(
      scheduled.map(({ failed_attempt }) => failed_attempt),
      [1, 2],
    );
    const [first, second] = scheduled.map(({ delay_ms }) => Number(delay_ms));
    assert.ok(first !== undefined && first >= 10 && first <= 20, `first delay ${first}`);
    assert.ok(second !== undefined && second >= 20 && second <= 40, `second delay ${second}`);
    assert.deepEqual(
      types("w").filter((type) => /sandbox|lease/.test(type)),
      ["failed", "failed", "completed"].flatMap((end) => [
        "executor_lease_requested",
        "executor_lease_acquired",
        "sandbox_job_started",
        `sandbox_job_${end}`,
        "executor_lease_released",
        ...(end === "failed" ? ["sandbox_job_retry_scheduled"] : []),
      ]),
    );
  });

  test("no attempt beyond max_attempts is made, and the failure says how many there were", async () => {
    const job = await run(
      program,
      graph("tired", [executor("w", "exit 7", { max_attempts: 2, retry_backoff_ms: 1 })]),
    );
    assert.equal(job.status, "failed");
    assert.equal(job.of("sandbox_job_started").length, 2);
    const { details } = failureOf(job) as { details: JsonObject };
    assert.deepEqual([details.attempt, details.max_attempts, details.exit_code], [2, 2, 7]);
  });

  test('"timeout_seconds": the command is ended, and the failure is executor.timeout', async () => {
    // Its time may be over before it has opened the pipe: nobody may wait for that.
    const pipe = gates.pipe("timeout");
    const job = await run(
      program,
      graph("slow", [executor("w", `exec 9<>${pipe}; sleep 600`, { timeout_seconds: 0.2 })]),
    );
    assert.equal(job.status, "failed");
    assert.equal(failureOf(job).code, "executor.timeout");
    await until("nothing is left of the command", async () => !(await gates.isHeld(pipe)));
  });

  test('"next_state: agent state for its next message"', async () => {
    const script = `n=$(sed -n 's/.*"agent_state":{"n":\\([0-9]*\\)}.*/\\1/p' "$SVC_CONTEXT_FILE"); n=$((\${n:-0} + 1)); printf '{"next_state":{"n":%d},"complete_step":%d}\\n' $n $n`;
    const nodes = [executor("w", script), aggregator("all")];
    const { result } = await run(
      program,
      graph("state", nodes, [["w", "all"]], { initial_inputs: { w: ["a", "b", "c"] } }),
    );
    assert.deepEqual(
      (result.messages as readonly JsonObject[]).map(({ result: step }) => step),
      [1, 2, 3],
    );
  });

  test('"emit_messages: [{type, body, to?}]": along the edges for the type, or to an agent without an edge', async () => {
    const emits = [
      { type: "left", body: 1 },
      { type: "right", body: 2 },
      { type: "any", body: 3, to: "far" },
    ];
    const nodes = [
      executor("w", answer({ emit_messages: emits }), { output_message_type: null }),
      router("l"),
      router("r"),
      router("far"),
    ];
    const { result } = await run(
      program,
      graph("emits", nodes, [
        ["w", "l", "left"],
        ["w", "r", "right"],
      ]),
    );
    assert.deepEqual(result, { outputs: { l: 1, r: 2, far: 3 } });
  });

  test('"events: [{type, payload}]" are added to the history; the engine\'s own types cannot be forged', async () => {
    const good = await run(
      program,
      graph("tells", [executor("w", answer({ events: [{ type: "page_read", payload: { page: 3 } }] }))]),
    );
    assert.deepEqual(good.of("page_read", "w")[0]?.payload, { page: 3 });
    const forged = await run(
      program,
      graph("forges", [executor("w", answer({ events: [{ type: "job_completed", payload: {} }] }))]),
    );
    assert.equal(forged.status, "failed");
    assert.equal(failureOf(forged).code, "executor.invalid_output");
  });

  test('"environment", and "the names in pass_env"; nothing else of the runtime\'s environment', async () => {
    const script = 'echo "own=$OWN passed=$PASSED kept=$KEPT_BACK home=$SVC_HOME"';
    const config = { environment: { OWN: "mine" }, pass_env: ["PASSED", "NOT_THERE"] };
    const { of } = await run(program, graph("env", [executor("w", script, config)]));
    assert.equal(of("log")[0]?.payload.message, "own=mine passed=outside kept= home=");
  });

  test('"long_lived: starts with the job and ends with it"', async () => {
    const alive = gates.pipe("long-lived");
    const dead = gates.released(alive);
    const nodes = [
      sensor("s"),
      executor("w", `exec 9>${alive}; echo up; sleep 600`, { lifecycle: "long_lived" }),
    ];
    const jobId = await submit(program, graph("companion", nodes));
    await happens(program, jobId, (event) => event.type === "log" && event.payload.message === "up");
    await call(program, "POST", path(jobId, "/messages"), { agent_id: "s", body: 1 });
    assert.equal((await ended(program, jobId)).status, "completed");
    await dead;
  });
});

describe("pools", () => {
  test('"under a lease of config.pool": never more commands at once than slots', async () => {
    const nodes = Array.from({ length: 6 }, (_, i) => executor(`e${i}`, ["true"], { pool: "one" }));
    const edges = nodes.map((node) => ["in", String(node.node_id)] as const);
    const { events, status } = await run(program, graph("narrow", [router("in"), ...nodes], edges));
    assert.equal(status, "completed");
    let held = 0;
    for (const { type } of events) {
      if (type === "executor_lease_acquired") held++;
      if (type === "executor_lease_released") held--;
      assert.ok(held <= 1, "one slot is held once");
    }
    assert.equal(held, 0);
  });

  test('"a fair queue: a large request is not starved by small ones" that came later, though they would fit', async () => {
    const gate = gates.pipe("fair");
    const inWide = (id: string, command: string[], slots: number) =>
      executor(id, command, { pool: "wide", pool_slots: slots });
    const small = Array.from({ length: 5 }, (_, i) => inWide(`small${i}`, ["true"], 1));
    const nodes = [router("in"), inWide("holder", ["cat", gate], 1), inWide("large", ["true"], 4), ...small];
    const edges = nodes.slice(1).map((node) => ["in", String(node.node_id)] as const);
    const jobId = await submit(program, graph("fair", nodes, edges));
    await happens(
      program,
      jobId,
      (event) => event.type === "executor_lease_requested" && event.agent_id === "small4",
    );
    await gates.open(gate);
    const { of, status } = await ended(program, jobId);
    assert.equal(status, "completed");
    const order = of("executor_lease_acquired").map((event) => event.agent_id);
    assert.deepEqual(order, ["holder", "large", "small0", "small1", "small2", "small3", "small4"]);
  });

  test("more slots than the pool has, or a pool nobody configured: resource.unsatisfiable, and what there is", async () => {
    for (const config of [{ pool: "one", pool_slots: 2 }, { pool: "gpu" }, { pool: "__proto__" }]) {
      const job = await run(program, graph("never", [executor("w", ["true"], config)]));
      assert.equal(job.status, "failed");
      assert.equal(failureOf(job).code, "resource.unsatisfiable");
      assert.match(String((failureOf(job).details as JsonObject).message), /default \(4 slots\)/);
      assert.deepEqual(job.of("sandbox_job_started"), []);
    }
  });

  test("node_labels that the only node has are met, others are resource.unsatisfiable", async () => {
    const withLabels = (labels: JsonObject) =>
      run(program, graph("labels", [executor("w", ["true"], { node_labels: labels })]));
    assert.equal((await withLabels({ disk: "ssd" })).status, "completed");
    const refused = await withLabels({ zone: "b" });
    assert.equal(failureOf(refused).code, "resource.unsatisfiable");
    assert.match(
      String((failureOf(refused).details as JsonObject).message),
      /^It needs a node with the label zone=b, and this one has the labels zone=a, disk=ssd/,
    );
  });
});
