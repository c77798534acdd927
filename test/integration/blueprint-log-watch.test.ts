// The blueprint log-watch, launched through the gateway on a folder that the test writes logs into.

import assert from "node:assert/strict";
import { appendFile, readdir, readFile, rename, truncate } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  errorsOf,
  launch,
  launched,
  outputsOf,
  startCatalog,
  startCatalogHere,
  type TestFolder,
  userFolder,
} from "../support/catalog-blueprints.ts";
import { assertProblem, call, ended, happens, pathsOf, type SeenEvent } from "../support/gateway-api.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

const ID = "log-watch";
/** Ends a test that would hang; none asserts on time. */
const limit = { timeout: 200_000 };

let program: Program;
before(async () => {
  program = await startCatalogHere();
});
after(() => program.stop());

const watching = (folder: TestFolder, watch: JsonObject = {}): JsonObject => ({
  logs: { folder: folder.path },
  watch: { poll_ms: 50, refresh_seconds: 0.1, silence_seconds: 0, ...watch },
});

/** A finding about a line that holds the text. */
const about = (text: string) => (event: SeenEvent) =>
  event.type === "finding" && String(event.payload.line).includes(text);

/** The watch reads from where it has begun only once it runs. */
const isWatching = (from: Program, runId: string) =>
  happens(from, runId, ({ type, agent_id }) => type === "sandbox_job_completed" && agent_id === "report");

async function cancelled(from: Program, runId: string) {
  await call(from, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  const end = await ended(from, runId);
  assert.equal(end.run.status, "cancelled");
  return end;
}

describe("the blueprint log-watch", { concurrency: 2 }, () => {
  it(
    "raises what is new in the logs, through rotation and cutting, until it is cancelled",
    limit,
    async () => {
      await using folder = await userFolder({ "app.log": "ERROR an old one, 1\n" });
      const log = join(folder.path, "app.log");
      const runId = await launched(program, ID, watching(folder, { burst: { errors: 5, seconds: 60 } }));
      await isWatching(program, runId);

      await appendFile(log, "ERROR an old one, 2\nINFO fine\nERROR the bridge <b>is closed</b>\n");
      await happens(program, runId, about("bridge"));
      await appendFile(log, "INFO in the old file: no space left on device\n");
      await rename(log, join(folder.path, "app.log.1"));
      await appendFile(log, "ERROR in the new file\n");
      await happens(program, runId, about("new file"));
      await happens(program, runId, about("old file"));
      await truncate(log, 0);
      await appendFile(log, "ERROR after cutting\n");
      await happens(program, runId, about("after cutting"));
      await appendFile(log, "ERROR after cutting\n".repeat(5));
      await happens(program, runId, ({ payload }) => payload.kind === "error_burst");
      await until("the page shows the burst", async () =>
        [...(await outputsOf(program, runId)).values()].some((text) => text.includes("Burst of errors")),
      );

      const { events } = await cancelled(program, runId);
      const findings = events.filter(({ type }) => type === "finding").map(({ payload }) => payload);
      assert.deepEqual(
        findings.map(({ kind, line }) => [kind, line]),
        [
          ["new_error", "ERROR the bridge <b>is closed</b>"],
          ...findings.slice(1, -2).map(({ kind, line }) => [kind, line]),
          ["new_error", "ERROR after cutting"],
          ["error_burst", "ERROR after cutting"],
        ],
      );
      assert.deepEqual(
        findings
          .slice(1, -2)
          .map(({ kind }) => kind)
          .sort(),
        ["new_error", "pattern"],
      );
      const outputs = await outputsOf(program, runId);
      assert.deepEqual([...outputs.keys()].sort(), ["findings.jsonl", "summary.html"]);
      const kept = (outputs.get("findings.jsonl") ?? "")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as JsonObject);
      assert.deepEqual(kept, findings);
      assert.match(outputs.get("summary.html") ?? "", /bridge &lt;b&gt;is closed/);
    },
  );

  it("shows the first finding in its outputs at once, however seldom it writes them", limit, async () => {
    await using folder = await userFolder({ "app.log": "" });
    const runId = await launched(program, ID, watching(folder, { refresh_seconds: 3_600 }));
    await isWatching(program, runId);
    await appendFile(join(folder.path, "app.log"), "ERROR the first\n");
    await until("findings.jsonl has it", async () => {
      const findings = (await outputsOf(program, runId)).get("findings.jsonl") ?? "";
      return findings.includes("ERROR the first");
    });
    await cancelled(program, runId);
  });

  it("reports silence, and that it is over", limit, async () => {
    await using folder = await userFolder({ "app.log": "INFO begins\n" });
    const runId = await launched(program, ID, watching(folder, { silence_seconds: 0.3 }));
    await happens(program, runId, ({ payload }) => payload.kind === "silence");
    await appendFile(join(folder.path, "app.log"), "INFO again\n");
    await happens(program, runId, ({ payload }) => payload.kind === "heard_again");
    await cancelled(program, runId);
  });

  it(
    "misses nothing and tells nothing twice when the program is killed while lines come",
    limit,
    async () => {
      await using home = await userFolder();
      await using folder = await userFolder({ "app.log": "" });
      const log = join(folder.path, "app.log");
      const problem = (i: number) => `ERROR ${"abcdefghijklmnopqrstuvwxyz"[i]} has failed\n`;
      await using first = await startCatalog({ home: home.path });
      const runId = await launched(first, ID, watching(folder, { burst: { errors: 100, seconds: 60 } }));
      await isWatching(first, runId);
      for (let i = 0; i < 8; i++) await appendFile(log, problem(i) + problem(i));
      await happens(first, runId, about("d has failed"));
      await first.kill();

      // While nobody watches: more lines, and the file is rotated.
      for (let i = 8; i < 12; i++) await appendFile(log, problem(i));
      await rename(log, join(folder.path, "app.log.1"));
      for (let i = 12; i < 16; i++) await appendFile(log, problem(i));

      await using second = await startCatalogHere({ home: home.path });
      for (let i = 0; i < 16; i++) await happens(second, runId, about(problem(i).trim()));
      const { of } = await cancelled(second, runId);
      const lines = of("finding").map(({ payload }) => String(payload.line));
      assert.deepEqual(
        [...lines].sort(),
        Array.from({ length: 16 }, (_, i) => problem(i).trim()),
      );
      assert.deepEqual(
        of("finding").map(({ payload }) => payload.number),
        Array.from({ length: 16 }, (_, i) => i + 1),
      );
    },
  );

  it("goes on when the watching command itself is killed", {
    ...limit,
    skip: process.platform !== "linux" && "it needs /proc",
  }, async () => {
    await using folder = await userFolder({ "app.log": "" });
    const log = join(folder.path, "app.log");
    const runId = await launched(program, ID, watching(folder));
    await isWatching(program, runId);
    await appendFile(log, "ERROR before\n");
    await happens(program, runId, about("before"));
    for (const pid of await watchersOf(runId)) process.kill(pid, "SIGKILL");
    await happens(
      program,
      runId,
      ({ type, agent_id }) => type === "sandbox_job_failed" && agent_id === "watch",
    );
    await appendFile(log, "ERROR meanwhile\n");
    await happens(program, runId, about("meanwhile"));
    const { of } = await cancelled(program, runId);
    assert.deepEqual(
      of("finding").map(({ payload }) => payload.line),
      ["ERROR before", "ERROR meanwhile"],
    );
  });

  it("refuses a launch without a folder, and expressions that are none", limit, async () => {
    const without = await launch(program, ID, {});
    assertProblem(without, 422, "validation_failed");
    assert.deepEqual(pathsOf(without), ["/config_overrides/logs/folder"]);
    assert.match(without.text, /absolute path, such as \/var\/log/);

    await using folder = await userFolder();
    const patterns = [{ name: "broken", pattern: "(" }];
    const errors = new Map(await errorsOf(program, ID, watching(folder, { error_pattern: "x*", patterns })));
    assert.match(errors.get("/config/watch/patterns/0/pattern") ?? "", /no regular expression/);
    assert.match(errors.get("/config/watch/error_pattern") ?? "", /every line/);
    assert.match((await errorsOf(program, ID, { logs: { folder: "logs" } }))[0]?.[1] ?? "", /absolute path/);
  });
});

/** The processes of the run's watch. */
async function watchersOf(runId: string): Promise<readonly number[]> {
  const found: number[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    // A process may end while we look.
    const [environment, command] = await Promise.all(
      ["environ", "cmdline"].map((file) => readFile(`/proc/${pid}/${file}`, "latin1").catch(() => "")),
    );
    const isOurs = environment?.split("\0").includes(`SVC_RUN_ID=${runId}`) === true;
    if (isOurs && command?.includes("watch/watch.py") === true) found.push(Number(pid));
  }
  assert.ok(found.length > 0, "the watch runs");
  return found;
}
