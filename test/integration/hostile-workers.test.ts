// Workers that misbehave with files and output: the job ends as it should, with a failure that says what happened or
// with a warning in its history, and the jobs beside it know nothing of it.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { sized } from "../support/long.ts";
import { executor, graph, oneCommand } from "../support/manifests.ts";
import { withoutPrivileges } from "../support/privileges.ts";
import { memoryOf, seesProcesses } from "../support/processes.ts";
import { type Program, startProgram } from "../support/program.ts";
import {
  artifactsOf,
  call,
  historyOf,
  jobDetail,
  type SeenEvent,
  submitFolder,
} from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const MiB = 1024 * 1024;
const FILES = sized(500, 5_000);
/** Far more than is kept of a run's logs. */
const FLOOD_MB = sized(400, 1_000);

/** A job of two agents that must not notice anything. */
const bystander = graph(
  "bystander",
  [
    executor("worker", 'cat "$SVC_INPUT_FILE"'),
    { node_id: "out", agent_type: "aggregator", config: { complete_after: 1 } },
  ],
  ["worker>out"],
);

interface Ended {
  readonly jobId: string;
  readonly runId: string;
  readonly events: readonly SeenEvent[];
  readonly last: SeenEvent;
  /** Code of the failure, if it has one. */
  readonly code: string | null;
}

async function endOf(program: Program, jobId: string): Promise<Ended> {
  const events = await historyOf(program, jobId);
  const last = events.at(-1);
  assert.ok(last !== undefined);
  const { run_id: runId } = (await jobDetail(program, jobId)).job;
  return { jobId, runId, events, last, code: (last.error?.code as string | undefined) ?? null };
}

/** Runs a job, and a well-behaved one beside it that must complete. */
async function run(program: Program, manifest: JsonObject): Promise<Ended> {
  const submit = async (one: JsonObject) => String((await call(program, "POST", "/jobs", one)).id);
  const [hostile, beside] = await Promise.all([submit(manifest), submit(bystander)]);
  const [ended, other] = await Promise.all([endOf(program, hostile), endOf(program, beside)]);
  assert.equal(other.last.type, "job_completed", "the job beside it");
  return ended;
}

function completed({ last }: Ended): void {
  assert.equal(last.type, "job_completed", JSON.stringify(last));
}

function failedWith(ended: Ended, code: string, message: RegExp): void {
  assert.equal(ended.code, code, JSON.stringify(ended.last));
  const error = ended.last.error as { details: { message: string }; remediation: string };
  assert.match(error.details.message, message);
  assert.ok(error.remediation.length > 0);
}

/** Messages of log events from the runtime about the worker. */
function warnings({ events }: Ended): readonly string[] {
  return events
    .filter(({ type, payload }) => type === "log" && payload.stream === "worker")
    .map(({ payload }) => String(payload.message));
}

const total = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0);

describe("workers that misbehave", { concurrency: 2 }, () => {
  let program: Program;
  before(async () => {
    program = await startProgram({
      // So that modes mean to it what they mean to everybody.
      through: withoutPrivileges,
      env: { SVC_EXECUTOR_MAX_CONCURRENCY: "8" },
    });
  });
  after(async () => {
    try {
      await call(program, "POST", "/jobs/cleanup");
      assert.deepEqual(
        await readdir(join(program.home, "runs")),
        [],
        "cleanup removes whatever they have left",
      );
    } finally {
      await program.stop();
    }
  });

  for (const signal of ["KILL", "SEGV"]) {
    test(`ended by SIG${signal}: the failure names the signal`, async () => {
      const ended = await run(program, oneCommand("signal", `kill -${signal} $$; sleep 60`));
      failedWith(ended, "executor.killed_by_signal", new RegExp(`signal SIG${signal}`));
      assert.match(JSON.stringify(ended.last.error), new RegExp(`"signal":"SIG${signal}"`));
    });
  }

  test("closes stdout and stderr and goes on: the job waits for its end", async () => {
    const command = 'exec >&- 2>&-; sleep 0.3; echo late > "$SVC_OUTPUT_DIR/late.txt"';
    const ended = await run(program, oneCommand("closing", command));
    completed(ended);
    assert.deepEqual(
      (await artifactsOf(program, ended.runId)).map(({ name }) => name),
      ["late.txt"],
    );
  });

  test("fills stderr without a newline: the line is cut and marked, and the job completes", async () => {
    const ended = await run(program, oneCommand("endless", "head -c 100000000 /dev/zero | tr '\\0' x >&2"));
    completed(ended);
    const logs = ended.events.filter(({ type }) => type === "log").map(({ payload }) => payload);
    assert.equal(logs.length, 1);
    assert.equal(logs[0]?.truncated, true);
    assert.ok(String(logs[0]?.message).length <= 64 * 1024);
  });

  test("writes garbage and huge lines to the event stream: warnings, bounded, and what is right still counts", async () => {
    const command = [
      'head -c 3000000 /dev/urandom > "$SVC_EVENT_STREAM"',
      'echo > "$SVC_EVENT_STREAM"',
      'head -c 5000000 /dev/zero | tr "\\0" x > "$SVC_EVENT_STREAM"',
      'echo > "$SVC_EVENT_STREAM"',
      `echo '{"type":"job_completed","payload":{}}' > "$SVC_EVENT_STREAM"`,
      `echo '{"type":"progress","payload":{"percent":50}}' > "$SVC_EVENT_STREAM"`,
    ];
    const ended = await run(program, oneCommand("garbage", command.join("; ")));
    completed(ended);
    const progress = ended.events.filter(({ type }) => type === "progress");
    assert.deepEqual(
      progress.map(({ payload }) => payload.percent),
      [50],
    );
    assert.equal(ended.events.filter(({ type }) => type === "job_completed").length, 1, "its own is no end");
    const said = warnings(ended);
    assert.ok(said.length >= 1 && said.length <= 25, `${said.length} warnings`);
    assert.ok(total(said) < 64 * 1024, "garbage is not kept");
  });

  test(`leaves links, pipes and ${FILES} files as output: regular files are kept, the others are named`, async () => {
    const command = [
      'cd "$SVC_OUTPUT_DIR"',
      "ln -s /etc/passwd secrets.txt",
      "ln -s .. up",
      "mkfifo pipe",
      "mkdir -p deep/er",
      "echo deep > deep/er/file.txt",
      `i=0; while [ $i -lt ${FILES} ]; do : > file-$i.txt; i=$((i+1)); done`,
    ];
    const ended = await run(program, oneCommand("littering", command.join("; ")));
    completed(ended);
    const names = new Set((await artifactsOf(program, ended.runId)).map(({ name }) => name));
    assert.equal(names.size, FILES + 1);
    assert.ok(names.has("deep/er/file.txt"));
    for (const name of ["secrets.txt", "up", "pipe"]) {
      assert.ok(!names.has(name), name);
      assert.ok(
        warnings(ended).some((message) => message.includes(`"${name}"`)),
        name,
      );
    }
  });

  test("deletes its own folders: it gets new ones for its next message", async () => {
    const command = 'ls; cd /; rm -rf "$SVC_WORKDIR" "$(dirname "$SVC_OUTPUT_DIR")" "$SVC_RUN_DIR"';
    const ended = await run(program, {
      ...oneCommand("deleting", command),
      initial_inputs: { worker: [1, 2, 3] },
    });
    completed(ended);
    assert.equal(ended.events.filter(({ type }) => type === "sandbox_job_completed").length, 3);
  });

  test("takes all rights from its own folders: its next message goes on, or fails with the folder's name", async () => {
    const command =
      'mkdir -p in/ner; chmod 000 in "$SVC_OUTPUT_DIR" "$(dirname "$SVC_OUTPUT_DIR")" "$SVC_WORKDIR"';
    const ended = await run(program, {
      ...oneCommand("locking", command),
      initial_inputs: { worker: [1, 2] },
    });
    if (ended.last.type !== "job_completed") {
      assert.match(String(ended.code), /^executor\.(workspace_failed|spawn_failed)$/);
      assert.match(JSON.stringify(ended.last.error), /EACCES/);
    }
  });

  test("writes into another agent's folder: the other is told, and gets its staged files as they were", async () => {
    const folder = await mkdtemp(join(tmpdir(), "troupe-bundle-"));
    try {
      await writeTamperingBundle(folder);
      const ended = await endOf(program, await submitFolder(program, folder));
      completed(ended);
      const modified = ended.events.filter(({ type }) => type === "workspace_modified");
      assert.deepEqual(
        modified.map(({ agent_id }) => agent_id),
        ["victim"],
      );
      const changes = modified[0]?.payload.changes as readonly string[];
      assert.ok(
        changes.some((change) => change.includes("planted.txt")),
        String(changes),
      );
      assert.ok(
        changes.some((change) => change.includes("data.txt")),
        String(changes),
      );
      const { result } = (await jobDetail(program, ended.jobId)).job;
      assert.match(JSON.stringify(result), /turn 2: data\.txt:as it was shipped/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  const broken: readonly [string, string, RegExp][] = [
    ["cut off", `printf '{"emit_messages": [{"type": "a", "bo'`, /no JSON/],
    [
      "of the wrong shape",
      `echo '{"emit_messages": "all of them", "outputs": [{}]}'`,
      /must be a list.*path/,
    ],
    ["with an event of the runtime's own", `echo '{"events": [{"type": "job_failed"}]}'`, /own types/],
    [
      "of 3 MB",
      `printf '{"complete_step": "'; head -c 3000000 /dev/zero | tr '\\0' x; echo '"}'`,
      /longer than/,
    ],
  ];
  for (const [what, command, message] of broken) {
    test(`ends well with a result object ${what}: the failure says what is wrong with it`, async () => {
      failedWith(await run(program, oneCommand("broken", command)), "executor.invalid_output", message);
    });
  }
});

test(`prints ${FLOOD_MB} MB: memory and logs stay bounded, and other jobs go on beside it`, async () => {
  await using program = await startProgram();
  const idle = seesProcesses ? memoryOf(program.pid).nowBytes : 0;
  const line = "x".repeat(999);
  const manifest = oneCommand("flooding", `yes ${line} | head -c ${FLOOD_MB}000000`);
  const flooding = String((await call(program, "POST", "/jobs", manifest)).id);
  const beside = await endOf(program, String((await call(program, "POST", "/jobs", bystander)).id));
  completed(beside);
  const last = await lastEvents(program, flooding);
  assert.deepEqual(
    last.filter(({ type }) => type === "log_truncated" || type === "job_completed").map(({ type }) => type),
    ["log_truncated", "job_completed"],
  );
  const { result } = (await jobDetail(program, flooding)).job;
  assert.ok(JSON.stringify(result).length < 128 * 1024, "the result carries the end of it only");
  const { size } = await stat(join(program.home, "troupe.db"));
  assert.ok(size < 450 * MiB, `the history has ${size} bytes`);
  if (!seesProcesses) return;
  const { nowBytes, peakBytes } = memoryOf(program.pid);
  const shown = [idle, peakBytes, nowBytes].map((bytes) => `${Math.round(bytes / MiB)} MiB`);
  console.log(`resident: idle ${shown[0]}, at most ${shown[1]}, afterwards ${shown[2]}`);
  // Between two collections there are 250 to 380 MiB of it in pieces. What is held of it for longer comes on top of that.
  assert.ok(peakBytes - idle < 500 * MiB, `resident: ${shown[0]} idle, ${shown[1]} at most`);
});

/** Waits for the job's end, and gives its last events, oldest first, without reading all of its history. */
async function lastEvents(program: Program, jobId: string): Promise<readonly JsonObject[]> {
  const look = async () => {
    const detail = await call(program, "GET", `/jobs/${jobId}`);
    if ((detail.job as JsonObject).status === "running") return null;
    return (detail.recent_events as readonly JsonObject[]).toReversed();
  };
  return await until(`job ${jobId} has ended`, look, 180_000);
}

async function writeTamperingBundle(folder: string): Promise<void> {
  const victim = executor(
    "victim",
    [
      "sh",
      "-c",
      'turn=$(cat "$SVC_INPUT_FILE"); if [ "$turn" = 1 ]; then ' +
        'echo \'{"emit_messages": [{"type": "go", "to": "intruder", "body": 1}]}\'; ' +
        'else echo "turn $turn: $(grep . data.txt planted.txt)"; fi',
    ],
    { upload_path: "victim", upload_as: "." },
  );
  const intruder = executor(
    "intruder",
    'cd "$SVC_RUN_DIR/../agents/victim/work" && echo forged > data.txt && echo planted > planted.txt && ' +
      'echo \'{"emit_messages": [{"type": "go", "to": "victim", "body": 2}]}\'',
    { output_message_type: null },
  );
  const manifest = graph("tampering", [victim, intruder], [], { initial_inputs: { victim: [1] } });
  await mkdir(join(folder, "payloads", "victim"), { recursive: true });
  await mkdir(join(folder, "config"));
  await writeFile(join(folder, "manifest.json"), JSON.stringify(manifest));
  await writeFile(join(folder, "config", "default.json"), "{}");
  await writeFile(join(folder, "payloads", "victim", "data.txt"), "as it was shipped\n");
}
