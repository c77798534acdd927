// Additions and removals that are cut off: whatever write the process dies at, the next one finishes the work, and what
// is there in the end is what an undisturbed process leaves.

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { blueprintFiles, filesIn } from "../../test/support/blueprint-operations.ts";
import { type Death, type TestHome, testHome } from "../../test/support/blueprints.ts";
import { writeFolder } from "../../test/support/bundle-files.ts";
import { fc } from "../../test/support/fast-check.ts";
import { job, run } from "../../test/support/gateway-samples.ts";
import { sized } from "../../test/support/long.ts";
import { until } from "../../test/support/until.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { Operation } from "../operations/records.ts";
import { Resources } from "./resources.ts";

const files = (text: string) =>
  blueprintFiles(
    "digest",
    {
      resources: [
        { name: "words", from: "words" },
        { name: "index", prepare: ["sh", "-c", "cat $SVC_PAYLOAD_DIR/words/a.txt > index"] },
      ],
      models: [{ model_id: "tiny", path: "tiny.bin" }],
    },
    { "payloads/words/a.txt": text, "payloads/tiny.bin": `weights of ${text}` },
  );

/** What lies in the home, by content-free names: sizes of files below each folder. */
async function left({ home }: TestHome): Promise<readonly string[]> {
  const found = await filesIn(home, "bundles", "resources", "models");
  return [...found]
    .map(([path, size]) => `${path.split("/")[0]} ${path.split("/").at(-1)?.slice(0, 5)} ${size}`)
    .sort();
}

async function checkHistory({ operationRecords }: TestHome, operationId: string): Promise<void> {
  const { lines } = await operationRecords.operationEvents(operationId, 0, 1_000);
  const events = lines.map(
    (line) => JSON.parse(line) as { id: number; type: string; payload: { percent: number } },
  );
  assert.deepEqual(
    events.map(({ id }) => id),
    events.map((_, i) => i + 1),
  );
  const percents = events.map(({ payload }) => payload.percent);
  assert.deepEqual(
    percents,
    percents.toSorted((a, b) => a - b),
  );
  assert.match(events.at(-1)?.type ?? "", /^operation_(completed|failed)$/);
}

type Kind = "addition" | "forced" | "removal";

function requested({ blueprints }: Awaited<ReturnType<TestHome["start"]>>, kind: Kind) {
  const removal = { dry_run: false, keep_resources: false, keep_models: false };
  if (kind === "removal") return blueprints.prepareRemoval("digest", removal);
  return blueprints.prepareAddition("digest", { force: kind === "forced" });
}

/**
 * Does one operation with processes that die on the way, one after the other; the last one lives.
 *
 * @returns its end, and how many came to their death
 */
async function survive(
  under: TestHome,
  kind: Kind,
  deaths: readonly Death[],
): Promise<Operation & { readonly died: number }> {
  const [first = null, ...others] = deaths;
  let died = 0;
  const start = async (death: Death | null) => {
    const started = await under.start(death);
    void started.died.then(() => died++);
    return started;
  };
  let current = await start(first);
  const operation = await under.request(requested(current, kind));
  current.blueprints.begin(operation);
  const ended = under.ended(operation);
  for (const death of first === null ? [] : [...others, null]) {
    await Promise.race([current.died, ended]);
    current = await start(death);
    await current.blueprints.recover();
  }
  const end = await ended;
  assert.equal(end.status, "completed", JSON.stringify([end.error, under.unforeseen]));
  await checkHistory(under, operation.operationId);
  return { ...end, died };
}

async function checkAdded(under: TestHome, expected: readonly string[], text: string): Promise<void> {
  assert.deepEqual(await left(under), expected);
  assert.equal(await readFile(join(under.home, "resources/digest/index/index"), "utf8"), text);
  assert.equal((await under.blueprintRecords.prepared("digest"))?.state, "added");
  const assets = await under.blueprintRecords.assets("digest");
  assert.deepEqual(
    assets.map(({ assetId, ready }) => [assetId, ready]),
    [
      ["index", true],
      ["words", true],
      ["tiny", true],
    ],
  );
}

/**
 * Adds, adds by force and removes, each over these deaths, and looks at what is there after each.
 *
 * @returns how many processes came to their death
 */
async function cycle(
  under: TestHome,
  expected: readonly string[],
  deaths: readonly Death[],
): Promise<number> {
  let died = 0;
  for (const kind of ["addition", "forced"] as const) {
    died += (await survive(under, kind, deaths)).died;
    await checkAdded(under, expected, "alpha");
  }
  const { result, died: removing } = await survive(under, "removal", deaths);
  assert.deepEqual(await left(under), []);
  assert.deepEqual(await under.blueprintRecords.assets("digest"), []);
  assert.equal(await under.blueprintRecords.prepared("digest"), null);
  assert.ok(result !== null);
  const { resources } = result.removed as unknown as { resources: { kind: string; action: string }[] };
  assert.deepEqual(
    resources.map(({ kind, action }) => `${kind} ${action}`),
    ["package delete", "resource delete", "resource delete", "model delete"],
  );
  return died + removing;
}

async function withBlueprint(use: (under: TestHome, expected: readonly string[]) => Promise<void>) {
  await using under = await testHome();
  await under.writeBlueprint("digest", files("alpha"));
  await survive(under, "addition", []);
  const expected = await left(under);
  await survive(under, "removal", []);
  await use(under, expected);
}

/** Words and an index of them. @param isFirst has notes as well */
const editions = (text: string, isFirst: boolean) =>
  blueprintFiles(
    "digest",
    {
      resources: [
        { name: "index", prepare: ["sh", "-c", "cat $SVC_PAYLOAD_DIR/words/a.txt > index"] },
        { name: "words", from: "words" },
        ...(isFirst ? [{ name: "notes", from: "words" }] : []),
      ],
    },
    { "payloads/words/a.txt": text },
  );

/**
 * Adds a blueprint anew with a process that dies on the way; by the next one, its folder has gone.
 *
 * @returns how the addition ended, and whether a process came to its death
 */
async function addWithoutFolder(
  death: Death,
): Promise<{ readonly status: string; readonly hasDied: boolean }> {
  await using under = await testHome();
  await under.writeBlueprint("digest", editions("alpha", true));
  await survive(under, "addition", []);
  await under.writeBlueprint("digest", editions("beta", false));
  const dying = await under.start(death);
  const operation = await under.request(requested(dying, "addition"));
  dying.blueprints.begin(operation);
  const hasDied = await Promise.race([dying.died.then(() => true), under.ended(operation).then(() => false)]);
  await rm(join(under.home, "../catalog/digest"), { recursive: true });
  await (await under.start()).blueprints.recover();
  const { status } = await under.ended(operation);
  const found = await new Resources({
    home: under.home,
    runCommand: async () => ({ kind: "aborted" }),
  }).folders("digest");
  const isNew = status === "completed";
  assert.deepEqual([...found.keys()].sort(), isNew ? ["index", "words"] : ["index", "notes", "words"]);
  assert.equal(await readFile(join(found.get("index") ?? "", "index"), "utf8"), isNew ? "beta" : "alpha");
  assert.equal(await readFile(join(found.get("words") ?? "", "a.txt"), "utf8"), isNew ? "beta" : "alpha");
  const assets = await under.blueprintRecords.assets("digest");
  assert.ok(assets.every(({ ready }) => ready));
  assert.equal((await under.blueprintRecords.prepared("digest"))?.state, "added");
  await checkHistory(under, operation.operationId);
  return { status, hasDied };
}

describe("a process that dies", () => {
  /** More than any of the operations makes. */
  const WRITES = 16;

  test("at a write of an operation, or right behind it: the next one finishes it, to what an undisturbed one leaves", () =>
    withBlueprint(async (under, expected) => {
      let atWrite = 0;
      // Until no operation has as many writes.
      while ((await cycle(under, expected, [{ atWrite, isCommitted: atWrite % 2 === 0 }])) > 0) atWrite++;
      assert.ok(atWrite > 5 && atWrite < WRITES, String(atWrite));
    }));

  test("while a blueprint is added again, whose folder is gone by the next start: it is all as before, or all new", async () => {
    const statuses = new Set<string>();
    for (let atWrite = 0; atWrite < WRITES; atWrite++) {
      const { status, hasDied } = await addWithoutFolder({ atWrite, isCommitted: true });
      if (!hasDied) break;
      statuses.add(status);
    }
    assert.deepEqual([...statuses], ["failed", "completed"]);
  });

  test("again and again: the last one finishes it all the same", () =>
    withBlueprint((under, expected) =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.record({ atWrite: fc.nat(WRITES), isCommitted: fc.boolean() }), {
            minLength: 1,
            maxLength: 4,
          }),
          async (deaths) => void (await cycle(under, expected, deaths)),
        ),
        { numRuns: sized(3, 12) },
      ),
    ));
});

test("what a killed process left incomplete is gone after the next start, also when its addition fails", async () => {
  await using under = await testHome();
  await under.writeBlueprint("digest", files("alpha"));
  await survive(under, "addition", []);
  const before = await left(under);
  const dying = await under.start({ atWrite: 0, isCommitted: true });
  const operation = await under.request(requested(dying, "forced"));
  dying.blueprints.begin(operation);
  await dying.died;
  for (const folder of ["index~other.part", "index~other.payload"]) {
    await writeFolder(join(under.home, "resources/digest", folder), { half: "half" });
  }
  await symlink("index~other", join(under.home, "resources/digest/index~link"));
  await writeFile(join(under.home, "models/tiny/part"), "half");
  await rm(join(under.home, "../catalog/digest"), { recursive: true });
  await (await under.start()).blueprints.recover();
  assert.equal((await under.ended(operation)).error?.code, "blueprint_not_found");
  assert.deepEqual(await left(under), before);
  assert.ok(!(await readdir(join(under.home, "resources/digest"))).includes("index~link"));
});

test("a run keeps the resources that it has found; they go with the next addition when no run is open", async () => {
  await using under = await testHome();
  await under.writeBlueprint("digest", files("alpha"));
  await survive(under, "addition", []);
  const resources = new Resources({ home: under.home, runCommand: async () => ({ kind: "aborted" }) });
  const found = await resources.folders("digest");
  assert.deepEqual([...found.keys()].sort(), ["index", "words"]);
  await under.records.write(async (writes) => {
    await writes.insertJob(job(1, { source: { kind: "blueprint", blueprintId: "digest" } }));
    await writes.insertRun(run(1, "job_0001"));
  });
  const index = join(found.get("index") ?? "", "index");
  await under.writeBlueprint("digest", files("beta"));
  await survive(under, "addition", []);
  assert.equal(await readFile(index, "utf8"), "alpha");
  const now = await resources.folders("digest");
  assert.equal(await readFile(join(now.get("index") ?? "", "index"), "utf8"), "beta");
  await under.records.write((writes) =>
    writes.endUnlaunched("run_0001", { status: "cancelled", failureJson: null }, 9),
  );
  await survive(under, "addition", []);
  await assert.rejects(readFile(index), { code: "ENOENT" });
});

const withModel = (blueprintId: string, text: string) =>
  blueprintFiles(
    blueprintId,
    { models: [{ model_id: "tiny", path: "tiny.bin" }] },
    { "payloads/tiny.bin": text },
  );

test("a run keeps the model that it has found, also when another blueprint brings its own of that name", async () => {
  await using under = await testHome();
  const add = async (blueprintId: string) => {
    const { blueprints } = await under.start();
    const operation = await under.request(blueprints.prepareAddition(blueprintId, { force: false }));
    blueprints.begin(operation);
    assert.equal((await under.ended(operation)).status, "completed");
  };
  const sizes = async () => [...(await filesIn(under.home, "models")).values()].sort();
  await under.writeBlueprint("digest", withModel("digest", "four"));
  await under.writeBlueprint("other", withModel("other", "eight888"));
  await add("digest");
  await under.records.write(async (writes) => {
    await writes.insertJob(job(1, { source: { kind: "blueprint", blueprintId: "digest" } }));
    await writes.insertRun(run(1, "job_0001"));
  });
  await under.writeBlueprint("digest", withModel("digest", "sixsix"));
  await add("digest");
  await add("other");
  assert.deepEqual(await sizes(), [4, 6, 8]);
  await under.records.write((writes) =>
    writes.endUnlaunched("run_0001", { status: "cancelled", failureJson: null }, 9),
  );
  await add("other");
  assert.deepEqual(await sizes(), [6, 8]);
});

test("of a model that two blueprints have with contents of their own, a removal deletes just what its preview shows", async () => {
  await using under = await testHome();
  await under.writeBlueprint("digest", withModel("digest", "four"));
  await under.writeBlueprint("other", withModel("other", "sixsix"));
  const { blueprints } = await under.start();
  const done = async (prepared: Parameters<TestHome["request"]>[0]) => {
    const operation = await under.request(prepared);
    blueprints.begin(operation);
    return under.ended(operation);
  };
  for (const id of ["digest", "other"]) await done(blueprints.prepareAddition(id, { force: false }));
  const removal = { dry_run: false, keep_resources: false, keep_models: false };
  const preview = await done(blueprints.prepareRemoval("digest", { ...removal, dry_run: true }));
  const removed = await done(blueprints.prepareRemoval("digest", removal));
  assert.deepEqual(removed.result?.removed, preview.result?.preview);
  assert.deepEqual(
    (await left(under)).filter((path) => path.startsWith("models")).map((path) => path.split(" ").at(-1)),
    ["6"],
  );
});

test("a resource whose link is newer than its row is made again when the package is unchanged", async () => {
  await using under = await testHome();
  await under.writeBlueprint("digest", files("alpha"));
  await survive(under, "addition", []);
  const resources = new Resources({ home: under.home, runCommand: async () => ({ kind: "aborted" }) });
  const versionBefore = await resources.current("digest", "index");
  // As an addition leaves it that was cut off behind the link's move.
  const folder = join(under.home, "resources/digest");
  await mkdir(join(folder, "index~other"));
  await resources.show("digest", "index", "other");
  await survive(under, "addition", []);
  assert.equal(await resources.current("digest", "index"), versionBefore);
  assert.equal(await readFile(join(folder, "index/index"), "utf8"), "alpha");
});

describe("what jobs are given", () => {
  test("of an addition that fails, though the blueprint stays added: they cannot be prepared, and learn why", async () => {
    await using under = await testHome();
    await under.writeBlueprint("digest", files("alpha"));
    await survive(under, "addition", []);
    const { blueprints } = await under.start();
    const settled: (readonly string[])[] = [];
    blueprints.onSettled((jobIds) => void settled.push(jobIds));
    await under.writeBlueprint("digest", { "manifest.json": {} });
    const operation = await under.records.write(async (writes) => {
      await writes.insertJob(
        job(1, {
          source: { kind: "blueprint", blueprintId: "digest" },
          status: "preparing",
          bundleFingerprint: null,
        }),
      );
      return blueprints.requestAddition(writes, "digest");
    });
    await rm(join(under.home, "../catalog/digest"), { recursive: true });
    blueprints.begin(operation);
    assert.equal((await under.ended(operation)).status, "failed");
    await until("the listeners are told", () => settled.length > 0);
    assert.deepEqual(settled, [["job_0001"]]);
    assert.equal((await under.records.job("job_0001"))?.status, "failed_preparation");
    assert.equal((await under.blueprintRecords.prepared("digest"))?.state, "added");
  });

  test("before, while and after a blueprint is added, and when its folder goes", async () => {
    await using under = await testHome();
    await under.writeBlueprint("digest", files("alpha"));
    const { blueprints } = await under.start();
    await assert.rejects(blueprints.forJob("nothing"), isDomainError("blueprint_not_found"));
    assert.equal((await blueprints.forJob("digest")).fingerprint, null);
    const settled: (readonly string[])[] = [];
    blueprints.onSettled((jobIds) => void settled.push(jobIds));
    const waiting = job(1, {
      source: { kind: "blueprint", blueprintId: "digest" },
      status: "preparing",
      bundleFingerprint: null,
    });
    const operation = await under.records.write(async (writes) => {
      await writes.insertJob(waiting);
      const first = await blueprints.requestAddition(writes, "digest");
      const second = await blueprints.requestAddition(writes, "digest");
      assert.equal(second.operationId, first.operationId);
      return first;
    });
    blueprints.begin(operation);
    await under.ended(operation);
    await until("the listeners are told", () => settled.length > 0);
    assert.deepEqual(settled, [["job_0001"]]);
    const found = await blueprints.forJob("digest");
    assert.notEqual(found.fingerprint, null);
    assert.equal((await under.records.job("job_0001"))?.status, "ready");
    assert.equal((await under.records.job("job_0001"))?.bundleFingerprint, found.fingerprint);
  });

  test("while it is being removed it cannot be used, and a run that begins first stops the removal", async () => {
    await using under = await testHome();
    await under.writeBlueprint("digest", files("alpha"));
    await survive(under, "addition", []);
    // It dies right behind the write that begins the removal.
    const dying = await under.start({ atWrite: 2, isCommitted: true });
    const removal = await under.request(requested(dying, "removal"));
    dying.blueprints.begin(removal);
    await dying.died;
    await assert.rejects(dying.blueprints.forJob("digest"), isDomainError("blueprint_busy"));
    const next = await under.start();
    await next.blueprints.recover();
    await under.ended(removal);

    await survive(under, "addition", []);
    const { blueprints } = await under.start();
    const late = await under.request(requested({ blueprints, died: Promise.resolve() }, "removal"));
    await under.records.write(async (writes) => {
      await writes.insertJob(job(1, { source: { kind: "blueprint", blueprintId: "digest" } }));
      await writes.insertRun(run(1, "job_0001"));
    });
    blueprints.begin(late);
    const ended = await under.ended(late);
    assert.equal(ended.error?.code, "blueprint_in_use");
    assert.notEqual((await blueprints.forJob("digest")).fingerprint, null);
  });
});

function isDomainError(code: string) {
  return (error: unknown) => error instanceof DomainError && error.code === code;
}
