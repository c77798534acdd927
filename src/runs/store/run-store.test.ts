// The run store over a home of its own: what is listed and served, what lies on disk, and what survives what.

import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, readFile, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { sized } from "../../../test/support/long.ts";
import {
  bytesOf,
  contentsOf,
  failing,
  failureOf,
  log,
  newRun,
  pathsBelow,
  plain,
  RUN_ID,
  sha256Of,
  started,
  storeOf,
} from "../../../test/support/run-store.ts";
import type { JsonObject } from "../../engine/json.ts";
import { renderEvent } from "../history/line.ts";
import { toLog } from "../history/logs.ts";
import { toTimeline } from "../history/timeline.ts";
import { PART_BYTES_MAX } from "./series-file.ts";

let home = "";
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "run-store-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const folder = () => join(home, "evidence", RUN_ID);
const context = { runId: RUN_ID, traceId: "4bf92f3577b34da6a3ce929d0e0e4736", parentSpanId: null };
const mixed = () => [plain({ n: 1 }), log("one"), started(1), failing(failureOf("it broke")), log("zwei ✓")];
const recordsIn = (text: Buffer | undefined) =>
  String(text)
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);

describe("what is listed", () => {
  test("the stable ids are listed in a fixed order, and what a run has not got yet is not listed", async () => {
    const run = newRun(mixed());
    const store = storeOf(home, run);
    const ids = async () => (await store.historyFiles(RUN_ID))?.map(({ artifactId }) => artifactId);
    const views = ["events_jsonl", "logs_jsonl", "errors_jsonl", "timeline_jsonl", "timeline_json"];
    assert.deepEqual(await ids(), ["run", "inputs", ...views]);
    run.result = '{"ok":true}';
    run.isEnded = true;
    assert.deepEqual(await ids(), ["run", "inputs", "result", ...views]);
  });

  test("size and hash are those of the bytes, for every entry, also of a run without events", async () => {
    for (const lines of [[], mixed()]) {
      for (const isEnded of [false, true]) {
        await rm(folder(), { recursive: true, force: true });
        const store = storeOf(home, newRun(lines, { isEnded }));
        for (const artifact of (await store.historyFiles(RUN_ID)) ?? assert.fail()) {
          const bytes = await bytesOf(artifact);
          assert.equal(bytes.length, artifact.size, artifact.artifactId);
          assert.equal(sha256Of(bytes), artifact.sha256, artifact.artifactId);
          const found = await store.find(RUN_ID, artifact.artifactId);
          assert.deepEqual([found?.size, found?.sha256], [artifact.size, artifact.sha256]);
        }
      }
    }
  });

  test("each series has the records of its view, and errors.jsonl one failure for each event with one", async () => {
    const lines = mixed();
    const contents = await contentsOf(storeOf(home, newRun(lines)));
    const seen = lines.map((line, i) => JSON.parse(renderEvent(RUN_ID, i + 1, line)) as unknown);
    assert.deepEqual(recordsIn(contents.get("events_jsonl")), seen);
    const logs = lines.map((line) => toLog(context, line)).filter((record) => record !== null);
    assert.deepEqual(recordsIn(contents.get("logs_jsonl")), logs);
    const timeline = lines.map((line, i) => toTimeline(context, i + 1, line)).filter((one) => one !== null);
    assert.equal(timeline.length, 2);
    assert.deepEqual(recordsIn(contents.get("timeline_jsonl")), timeline);
    const { runId: run_id, traceId: trace_id } = context;
    const document = JSON.parse(String(contents.get("timeline_json"))) as unknown;
    assert.deepEqual(document, { schema_version: "svc.timeline.v1", run_id, trace_id, records: timeline });
    const [failure, ...others] = recordsIn(contents.get("errors_jsonl"));
    assert.equal(others.length, 0);
    assert.equal((failure as { desc: string }).desc, "it broke");
  });

  test("a failure that is longer as JSON than 16 KiB is cut; its code and its message stay", async () => {
    const failure = failureOf("it broke");
    const long = { ...failure, details: { ...failure.details, stderr_tail: "\0".repeat(4_096) } };
    const errors = (await contentsOf(storeOf(home, newRun([failing(long)])))).get("errors_jsonl");
    assert.ok(errors && errors.length <= 16 * 1024 + 1);
    const [{ code, details }] = recordsIn(errors) as [JsonObject];
    const { message, stderr_tail: tail } = details as JsonObject;
    assert.deepEqual([code, message], ["executor.exit_nonzero", "it broke"]);
    assert.equal((tail as JsonObject).chars, 4_096);
  });

  test("an event whose payload only looks like a failure is none", async () => {
    const payload = { x: 1, error: failureOf("told by a worker") };
    const contents = await contentsOf(storeOf(home, newRun([plain(payload)])));
    assert.equal(contents.get("errors_jsonl")?.length, 0);
  });
});

describe("bytes", () => {
  test("any range of any entry is that part of its bytes", async () => {
    const store = storeOf(home, newRun(Array.from({ length: 40 }, mixed).flat(), { isEnded: true }));
    const listed = (await store.historyFiles(RUN_ID)) ?? [];
    const wholes = new Map(await Promise.all(listed.map(async (one) => [one, await bytesOf(one)] as const)));
    const pick = fc.constantFrom(...listed.filter(({ size }) => size > 0));
    const property = fc.asyncProperty(pick, fc.nat(), fc.nat(), async (artifact, a, b) => {
      const [first, last] = [a % artifact.size, b % artifact.size].sort((x, y) => x - y) as [number, number];
      const part = await buffer(await artifact.open(first, last));
      assert.deepEqual(part, wholes.get(artifact)?.subarray(first, last + 1));
    });
    await fc.assert(property, { numRuns: sized(50, 400) });
  });

  test("what was listed stays what is served, though the run has continued", async () => {
    const run = newRun(mixed());
    const store = storeOf(home, run);
    const listed = (await store.historyFiles(RUN_ID)) ?? [];
    run.lines.push(...mixed(), ...mixed());
    const later = await contentsOf(store);
    for (const artifact of listed) {
      const bytes = await bytesOf(artifact);
      assert.equal(sha256Of(bytes), artifact.sha256, artifact.artifactId);
      if (artifact.artifactId === "run") continue;
      const grown = later.get(artifact.artifactId) ?? Buffer.alloc(0);
      const same = artifact.artifactId === "timeline_json" ? bytes.length - 2 : bytes.length;
      assert.deepEqual(grown.subarray(0, same), bytes.subarray(0, same));
    }
  });

  test("projecting in any steps, with restarts between them, comes to the same bytes as projecting at once", async () => {
    const step = fc.record({ count: fc.integer({ min: 0, max: 120 }), restart: fc.boolean() });
    const property = fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      await rm(join(home, "evidence"), { recursive: true, force: true });
      const lines = Array.from({ length: 60 }, mixed).flat();
      const run = newRun([]);
      let store = storeOf(home, run);
      for (const { count, restart } of steps) {
        if (restart) store = storeOf(home, run);
        run.lines.push(...lines.slice(run.lines.length, run.lines.length + count));
        await store.historyFiles(RUN_ID);
      }
      run.lines = lines;
      run.isEnded = true;
      const inSteps = await contentsOf(store);
      await rm(folder(), { recursive: true });
      const atOnce = await contentsOf(storeOf(home, run));
      assert.deepEqual([...inSteps.keys()], [...atOnce.keys()]);
      for (const [id, bytes] of atOnce) assert.ok(bytes.equals(inSteps.get(id)!), id);
    });
    await fc.assert(property, { numRuns: sized(10, 60) });
  });
});

describe("rotation", () => {
  test("events, logs and errors are cut at 10 MiB; full segments never change, whatever follows", async () => {
    const filler = "x".repeat(50_000);
    const failure = failureOf(`${"m".repeat(2_000)}`, "e".repeat(4_000));
    const noisy = Array.from({ length: 250 }, (_, i) => log(`${i} ${filler}`));
    const broken = Array.from({ length: 2_000 }, () => failing(failure));
    const run = newRun([...noisy, ...broken]);
    const store = storeOf(home, run);
    const before = (await store.historyFiles(RUN_ID)) ?? [];
    const segments = before.filter(({ artifactId }) => /_\d{3}$/.test(artifactId));
    assert.deepEqual(
      segments.map(({ artifactId, name }) => [artifactId, name]),
      [
        ["events_jsonl_001", "events.001.jsonl"],
        ["events_jsonl_002", "events.002.jsonl"],
        ["logs_jsonl_001", "logs.001.jsonl"],
        ["errors_jsonl_001", "errors.001.jsonl"],
      ],
    );
    for (const { size } of segments) assert.ok(size <= PART_BYTES_MAX && size > PART_BYTES_MAX - 60_000);
    const joined = async (series: string) => {
      const contents = await contentsOf(store);
      const parts = [...contents].filter(([id]) => id.startsWith(`${series}_jsonl_`));
      return Buffer.concat([...parts.map(([, bytes]) => bytes), contents.get(`${series}_jsonl`)!]);
    };
    const events = recordsIn(await joined("events")) as { id: number }[];
    assert.deepEqual(
      events.map(({ id }) => id),
      run.lines.map((_, i) => i + 1),
    );
    assert.equal(recordsIn(await joined("errors")).length, broken.length);

    run.lines.push(...noisy, ...broken);
    run.isEnded = true;
    const after = new Map((await store.historyFiles(RUN_ID))?.map((one) => [one.artifactId, one]));
    for (const { artifactId, sha256, size } of segments) {
      const same = after.get(artifactId);
      assert.deepEqual([same?.sha256, same?.size], [sha256, size]);
      assert.equal(sha256Of(await bytesOf(same!)), sha256);
    }
    assert.ok(after.has("events_jsonl_004") && after.has("logs_jsonl_002"));
  });
});

describe("the cache", () => {
  test("nothing is written before somebody looks, and a result alone costs no projection", async () => {
    const store = storeOf(home, newRun(mixed(), { isEnded: true, result: '{"ok":true}' }));
    assert.equal(await store.has(RUN_ID), true);
    assert.deepEqual(await store.files(RUN_ID, 10, null), []);
    assert.equal(String(await bytesOf((await store.find(RUN_ID, "result"))!)), '{"ok":true}');
    assert.equal(await store.find(RUN_ID, "art_none"), null);
    assert.deepEqual(await pathsBelow(home), []);
    await store.historyFiles(RUN_ID);
    assert.ok((await pathsBelow(folder())).includes("events.001.jsonl"));
  });

  test("an ended run is read once: later looks, and those after a restart, read no event", async () => {
    let reads = 0;
    const run = newRun(mixed(), { isEnded: true, onRead: () => reads++ });
    const first = await contentsOf(storeOf(home, run));
    const before = reads;
    assert.ok(before > 0);
    const restarted = storeOf(home, run);
    assert.deepEqual(await contentsOf(restarted), first);
    assert.deepEqual(await contentsOf(restarted), first);
    assert.equal(reads, before);
  });

  test("an open run is read on from where it was left, also after a restart", async () => {
    let reads = 0;
    const run = newRun(
      Array.from({ length: 300 }, () => log("x")),
      { onRead: () => reads++ },
    );
    await storeOf(home, run).historyFiles(RUN_ID);
    reads = 0;
    run.lines.push(log("more"));
    const contents = await contentsOf(storeOf(home, run));
    assert.equal(reads, 1);
    assert.equal(recordsIn(contents.get("logs_jsonl")).length, 301);
  });

  const damage: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["is gone", () => rm(folder(), { recursive: true })],
    ["has lost a file", () => rm(join(folder(), "events.001.jsonl"))],
    ["has a shorter file", () => truncate(join(folder(), "logs.001.jsonl"), 3)],
    ["has a longer file", () => appendFile(join(folder(), "timeline.001.jsonl"), "{}\n")],
    ["has a file with other bytes", () => overwrite("errors.001.jsonl")],
    ["has half a state", () => truncate(join(folder(), "state.json"), 30)],
    [
      "has a state of another form",
      () => writeFile(join(folder(), "state.json"), '{"version":1,"series":7}'),
    ],
    ["has no state", () => rm(join(folder(), "state.json"))],
  ];
  /** Other bytes of the same length. */
  const overwrite = async (name: string) => {
    const path = join(folder(), name);
    const bytes = await readFile(path);
    await writeFile(path, bytes.fill(0x20, 0, 5));
    await utimes(path, new Date(), new Date());
  };
  for (const [what, harm] of damage) {
    test(`a cache that ${what} is made anew, byte for byte, before and after a restart`, async () => {
      const run = newRun(mixed(), { isEnded: true, result: "{}" });
      for (const isWarm of [true, false]) {
        const store = storeOf(home, run);
        const first = await contentsOf(store);
        await harm();
        const now = isWarm ? store : storeOf(home, run);
        for (const [id, bytes] of first) {
          const found = await now.find(RUN_ID, id);
          assert.ok(found && bytes.equals(await bytesOf(found)), id);
        }
      }
    });
  }

  test("the files of an open run are made again at the next start when a byte of them was changed", async () => {
    for (const series of ["events", "logs", "errors", "timeline"]) {
      const run = newRun(mixed(), { runId: `run_${series}` });
      const path = join(home, "evidence", run.runId, `${series}.001.jsonl`);
      const first = await contentsOf(storeOf(home, run), run.runId);
      const bytes = await readFile(path);
      await writeFile(path, bytes.fill(0x20, 3, 4));
      run.lines.push(...mixed());
      const now = await contentsOf(storeOf(home, run), run.runId);
      const before = first.get(`${series}_jsonl`)!;
      assert.ok(now.get(`${series}_jsonl`)?.subarray(0, before.length).equals(before), series);
    }
  });

  test("what a killed writer left at the end of a part is not in it when the part is full", async () => {
    const long = () => plain({ text: "x".repeat(60_000) });
    const run = newRun(Array.from({ length: 174 }, long));
    const store = storeOf(home, run);
    const roomLeft = async () => PART_BYTES_MAX - (await store.find(RUN_ID, "events_jsonl"))!.size;
    while ((await roomLeft()) > 60_000) run.lines.push(long());
    await appendFile(join(folder(), "events.001.jsonl"), "left over");
    run.lines.push(long());
    const found = await contentsOf(storeOf(home, run));
    assert.equal(recordsIn(found.get("events_jsonl_001")).length, run.lines.length - 1);
    assert.equal(recordsIn(found.get("events_jsonl")).length, 1);
  });

  test("what a killed writer wrote after its last state is overwritten", async () => {
    const run = newRun(mixed());
    await storeOf(home, run).historyFiles(RUN_ID);
    for (const series of ["events", "logs", "errors", "timeline"]) {
      await appendFile(join(folder(), `${series}.001.jsonl`), `{"half":"${"x".repeat(9_000)}`);
      await writeFile(join(folder(), `${series}.002.jsonl`), "left over\n".repeat(100));
    }
    run.lines.push(...mixed());
    run.isEnded = true;
    const found = await contentsOf(storeOf(home, run));
    await rm(folder(), { recursive: true });
    assert.deepEqual(found, await contentsOf(storeOf(home, run)));
  });
});

describe("a disk that takes nothing", () => {
  test("a read fails once, though several files could not be written; the next one succeeds", async () => {
    const run = newRun([]);
    const store = storeOf(home, run);
    await store.historyFiles(RUN_ID);
    // Where the files are to be, folders are: nothing can be written there.
    for (const series of ["events", "logs"]) await mkdir(join(folder(), `${series}.001.jsonl`));
    run.lines.push(...Array.from({ length: 4 }, () => log("x".repeat(50_000))));
    await assert.rejects(store.historyFiles(RUN_ID), { code: "EISDIR" });
    await rm(folder(), { recursive: true });
    assert.equal(recordsIn((await contentsOf(store)).get("logs_jsonl")).length, 4);
  });
});

describe("removal", () => {
  test("a run that is removed leaves no folder, and is not found again", async () => {
    const run = newRun(mixed());
    const store = storeOf(home, run);
    await store.historyFiles(RUN_ID);
    run.exists = false;
    await store.remove(RUN_ID);
    assert.equal(await store.historyFiles(RUN_ID), null);
    assert.equal(await store.find(RUN_ID, "events_jsonl"), null);
    assert.deepEqual(await pathsBelow(join(home, "evidence")), []);
  });

  test("a run that is removed while it is projected leaves no folder, though others read it meanwhile", async () => {
    const run = newRun(Array.from({ length: 5_000 }, () => log("x".repeat(500))));
    const store = storeOf(home, run);
    const { promise: isRead, resolve } = Promise.withResolvers<void>();
    run.onRead = resolve;
    const looks = [store.historyFiles(RUN_ID), store.find(RUN_ID, "logs_jsonl"), store.historyFiles(RUN_ID)];
    await isRead;
    run.exists = false;
    const removed = store.remove(RUN_ID);
    looks.push(store.historyFiles(RUN_ID));
    assert.deepEqual(await Promise.all(looks), [null, null, null, null]);
    await removed;
    assert.deepEqual(await pathsBelow(join(home, "evidence")), []);
  });

  test("stopping aborts what is under way; the next start continues, with the same result", async () => {
    const run = newRun(Array.from({ length: 20_000 }, (_, i) => log(`${i} ${"x".repeat(900)}`)));
    const store = storeOf(home, run);
    let pages = 0;
    run.onRead = () => {
      if (++pages === 150) void store.stop();
    };
    await assert.rejects(store.historyFiles(RUN_ID), { name: "HistoryUnavailable" });
    await store.stop();
    pages = 150;
    const found = await contentsOf(storeOf(home, run));
    // What was full by then was not made again.
    assert.ok(pages < 350, `${pages - 150} pages`);
    await rm(folder(), { recursive: true });
    assert.deepEqual(found, await contentsOf(storeOf(home, run)));
  });
});
