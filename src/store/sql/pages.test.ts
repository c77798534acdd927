// The part of the gateway's contract that is about lists: filters, order, and walks while everything changes.

import assert from "node:assert/strict";
import { fc } from "../../../test/support/fast-check.ts";
import {
  type ContractTest,
  type GatewayUnderTest,
  gatewayContract,
  withJobs,
  withRuns,
} from "../../../test/support/gateway-records.ts";
import { advance, job, launch, run } from "../../../test/support/gateway-samples.ts";
import { progress } from "../../../test/support/journal-records.ts";
import type { JobStatus } from "../../engine/journal.ts";
import type { RunPage } from "../../launch/records.ts";
import type { Page } from "../../lib/page.ts";

const ids = (runs: readonly { readonly runId: string }[]) => runs.map((one) => Number(one.runId.slice(4)));

gatewayContract("the gateway's records, of pages", contract);

function contract(test: ContractTest): void {
  test("jobs of one blueprint are listed without the others, ended ones if asked for", async (under) => {
    const { records } = under;
    const of = (blueprintId: string) => ({ source: { kind: "blueprint", blueprintId } as const });
    await withJobs(under, job(1, of("a")), job(2, of("b")), job(3, of("a")), job(4));
    await withRuns(under, run(1, "job_0001"));
    const end = { status: "cancelled", failureJson: null } as const;
    await records.write((writes) => writes.endUnlaunched("run_0001", end, 5));
    const list = async (blueprintId: string, includeTerminal: boolean) => {
      const page = { blueprintId, includeTerminal, limit: 9, after: null };
      return (await records.jobs(page)).rows.map(({ jobId }) => jobId);
    };
    assert.deepEqual(await list("a", true), ["job_0003", "job_0001"]);
    assert.deepEqual(await list("a", false), ["job_0003"]);
    assert.deepEqual(await list("nothing", true), []);
  });

  filtersContract(test);
  sizesContract(test);
  recoveryContract(test);
  walksContract(test);
}

function filtersContract(test: ContractTest): void {
  test("runs are listed newest first, by job, by status, and by both", async (under) => {
    const { records, journal } = under;
    await withJobs(under, job(1), job(2));
    const runs = [1, 2, 3, 4, 5, 6].map((n) => run(n, `job_000${(n % 2) + 1}`));
    await withRuns(under, ...runs);
    for (const n of [1, 2, 3]) await journal.commit([launch(runs[n - 1]!)]);
    await journal.commit([advance(runs[1]!, 1, { status: "completed" })]);
    const list = async (filter: Partial<RunPage>) =>
      ids((await records.runs({ jobId: null, status: null, limit: 10, after: null, ...filter })).rows);
    assert.deepEqual(await list({}), [6, 5, 4, 3, 2, 1]);
    assert.deepEqual(await list({ limit: 2, after: "run_0005" }), [4, 3]);
    assert.deepEqual(await list({ jobId: "job_0001" }), [6, 4, 2]);
    assert.deepEqual(await list({ jobId: "job_0001", after: "run_0004" }), [2]);
    assert.deepEqual(await list({ status: ["pending"] }), [6, 5, 4]);
    assert.deepEqual(await list({ status: ["running"], limit: 1 }), [3]);
    assert.deepEqual(await list({ jobId: "job_0001", status: ["completed"] }), [2]);
    assert.deepEqual(await list({ jobId: "job_0002", status: ["completed"] }), []);
    assert.deepEqual(ids(await records.write((writes) => writes.openRuns("job_0001"))), [4, 6]);
    assert.deepEqual(
      (await records.recentRuns("job_0001", 2)).map((one) => [one.runId, one.status]),
      [
        ["run_0006", "pending"],
        ["run_0004", "pending"],
      ],
    );
    const grid = await records.gridRuns("job_0001", 2, "run_0005");
    assert.deepEqual(
      grid.map((one) => [one.runId, one.runtimeJobId, one.status]),
      [
        ["run_0004", "g-0004", "pending"],
        ["run_0002", "g-0002", "completed"],
      ],
    );
  });
}

const MIB = 1024 * 1024;
const largeText = (n: number, mib: number) => JSON.stringify({ n, text: "x".repeat(mib * MIB) });

/** Walks a list of which every page but the last is cut for its size. @returns the ids, page by page */
async function pagesOf<Row>(
  read: (after: string | null) => Promise<Page<Row>>,
  idOf: (row: Row) => string,
): Promise<string[][]> {
  const pages: string[][] = [];
  for (;;) {
    const { rows, isCut } = await read(pages.at(-1)?.at(-1) ?? null);
    assert.ok(rows.length > 0 || !isCut, "a cut page has at least one row");
    pages.push(rows.map(idOf));
    if (!isCut) return pages;
  }
}

function sizesContract(test: ContractTest): void {
  test("a page of runs ends before its texts are too long, in whatever column, and the next one continues after it", async (under) => {
    const { records, journal } = under;
    await withJobs(under, job(1), job(2));
    const inputs = run(1, "job_0001", { inputsJson: largeText(1, 5) });
    const overrides = run(2, "job_0001", { configOverridesJson: largeText(2, 4) });
    const result = run(3, "job_0001");
    const failure = run(4, "job_0001");
    const tooLarge = run(5, "job_0001", { inputsJson: largeText(5, 12) });
    const elsewhere = run(6, "job_0002", { inputsJson: largeText(6, 7) });
    const small = [7, 8, 9].map((n) => run(n, "job_0001"));
    await withRuns(under, inputs, overrides, result, failure, tooLarge, elsewhere, ...small);
    const completed = progress({ status: "completed", resultJson: largeText(3, 3) });
    await journal.commit([launch(result, { progress: completed })]);
    const end = { status: "failed", failureJson: largeText(4, 3) } as const;
    await records.write((writes) => writes.endUnlaunched("run_0004", end, 1));
    const walk = (filter: Partial<RunPage>) =>
      pagesOf(
        (after) => records.runs({ jobId: null, status: null, limit: 200, ...filter, after }),
        (one) => one.runId,
      ).then((pages) => pages.map((page) => page.map((id) => id.slice(-1)).join("")));
    assert.deepEqual(await walk({ jobId: "job_0001" }), ["987", "5", "43", "2", "1"]);
    assert.deepEqual(await walk({}), ["9876", "5", "43", "2", "1"]);
    assert.deepEqual(await walk({ status: ["pending"] }), ["9876", "5", "2", "1"]);
    assert.deepEqual(await walk({ jobId: "job_0001", status: ["pending"] }), ["987", "5", "2", "1"]);
    const two = await records.runs({ jobId: null, status: null, limit: 2, after: null });
    assert.deepEqual([ids(two.rows), two.isCut], [[9, 8], false], "what the limit leaves out is not cut");
    const one = await records.runs({ jobId: null, status: null, limit: 200, after: "run_0006" });
    assert.deepEqual(
      [one.rows[0]?.inputsJson === tooLarge.inputsJson, one.rows.length, one.isCut],
      [true, 1, true],
    );
    // Reading that ended early holds nothing: the store takes writes, and reads them.
    await withRuns(under, run(10, "job_0001"));
    assert.equal((await records.run("run_0010"))?.status, "pending");
  });

  test("pages of jobs end before their texts are too long, too", async (under) => {
    const { records } = under;
    const jobs = [1, 2, 3, 4].map((n) => job(n, { configurationJson: largeText(n, 3) }));
    await withJobs(under, ...jobs);
    for (const includeTerminal of [true, false]) {
      const pages = await pagesOf(
        (after) => records.jobs({ includeTerminal, limit: 200, after }),
        (one) => one.jobId,
      );
      assert.deepEqual(pages, [
        ["job_0004", "job_0003"],
        ["job_0002", "job_0001"],
      ]);
    }
  });
}

function recoveryContract(test: ContractTest): void {
  test("a run whose job is being prepared is unsettled only by its desired state", async (under) => {
    const { records } = under;
    const blueprint = {
      source: { kind: "blueprint", blueprintId: "digest" },
      bundleFingerprint: null,
    } as const;
    await withJobs(
      under,
      job(1, { ...blueprint, status: "preparing" }),
      job(2, { ...blueprint, status: "failed_preparation" }),
    );
    await withRuns(under, run(1, "job_0001"), run(2, "job_0001"), run(3, "job_0002"));
    await records.write((writes) => writes.setDesiredState("run_0002", "cancelled", 1));
    const all = { jobId: null, limit: 9, after: null };
    assert.deepEqual(ids(await records.unsettledRuns(all)), [2, 3]);
    const outcome = { kind: "ready", fingerprint: "f", graphId: "g", extensions: [] } as const;
    await records.write((writes) => writes.blueprints.settleJobs("digest", outcome, 2));
    assert.deepEqual(ids(await records.unsettledRuns(all)), [1, 2, 3]);
    assert.equal((await records.job("job_0001"))?.bundleFingerprint, "f");
  });

  test("unsettled are the open runs that are to be launched, or are not as they were asked to be, oldest first", async (under) => {
    const { records, journal } = under;
    await withJobs(under, job(1), job(2));
    const runs = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => run(n, `job_000${(n % 2) + 1}`));
    await withRuns(under, ...runs);
    const start = async (n: number, status: JobStatus) => {
      await journal.commit([launch(runs[n - 1]!, {})]);
      await journal.commit([advance(runs[n - 1]!, 1, { status })]);
    };
    await start(2, "running");
    await start(3, "running");
    await start(4, "paused");
    await start(5, "paused");
    await start(6, "completed");
    await start(7, "running");
    await records.write(async (writes) => {
      await writes.setDesiredState("run_0003", "paused", 1);
      await writes.setDesiredState("run_0004", "running", 1);
      await writes.setDesiredState("run_0005", "paused", 1);
      await writes.setDesiredState("run_0007", "cancelled", 1);
      // The user has paused this one before its launch: it waits, as it was asked to.
      await writes.setDesiredState("run_0008", "paused", 1);
      await writes.setWaiting("run_0008", { status: "paused", label: null, owner: null }, 1);
    });
    const again = await under.reopen();
    const unsettled = async (jobId: string | null, limit: number, after: string | null) =>
      ids(await again.records.unsettledRuns({ jobId, limit, after }));
    assert.deepEqual(await unsettled(null, 10, null), [1, 3, 4, 7]);
    assert.deepEqual(await unsettled(null, 2, "run_0001"), [3, 4]);
    assert.deepEqual(await unsettled("job_0002", 10, null), [1, 3, 7]);
    assert.deepEqual(await unsettled("job_0002", 2, "run_0001"), [3, 7]);
  });
}

/** What happens between two pages of a walk. */
type Action =
  | { readonly kind: "insertJob" }
  | { readonly kind: "insertRun"; readonly pick: number }
  | { readonly kind: "deleteJob"; readonly pick: number }
  | { readonly kind: "launch"; readonly pick: number }
  | { readonly kind: "endUnlaunched"; readonly pick: number }
  | { readonly kind: "complete"; readonly pick: number }
  | { readonly kind: "purge" }
  | { readonly kind: "page"; readonly limit: number };

const pick = fc.nat(1_000);
const actions = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("insertJob" as const) }),
    fc.record({ kind: fc.constant("insertRun" as const), pick }),
    fc.record({ kind: fc.constant("insertRun" as const), pick }),
    fc.record({ kind: fc.constant("deleteJob" as const), pick }),
    fc.record({ kind: fc.constant("launch" as const), pick }),
    fc.record({ kind: fc.constant("endUnlaunched" as const), pick }),
    fc.record({ kind: fc.constant("complete" as const), pick }),
    fc.record({ kind: fc.constant("purge" as const) }),
    fc.record({ kind: fc.constant("page" as const), limit: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant("page" as const), limit: fc.integer({ min: 1, max: 4 }) }),
  ),
  { minLength: 20, maxLength: 50 },
);

function walksContract(test: ContractTest): void {
  test("random creates, deletes and ends: a walk through pages meets each item that exists throughout once, and counts agree", async (under) => {
    let numbers = 0;
    await fc.assert(
      fc.asyncProperty(actions, async (given) => {
        const model = new Model(under, () => ++numbers);
        await model.prepare();
        for (const action of given) await model.apply(action);
        await model.finish();
      }),
      { numRuns: 30 },
    );
  });
}

interface ModelRun {
  readonly runId: string;
  readonly jobId: string;
  readonly number: number;
  status: "pending" | "running" | "completed" | "cancelled";
  launched: boolean;
}

/** A walk under way: what was there when it began and still is, and what it has met. */
class Walk {
  readonly throughout: Set<string>;
  readonly met: string[] = [];
  after: string | null = null;
  isOver = false;

  constructor(present: Iterable<string>) {
    this.throughout = new Set(present);
  }

  take(page: readonly string[]): void {
    this.met.push(...page);
    this.after = page.at(-1) ?? this.after;
    if (page.length === 0) this.isOver = true;
  }

  check(): void {
    assert.equal(new Set(this.met).size, this.met.length, "an item was met twice");
    for (const id of this.throughout) assert.ok(this.met.includes(id), `${id} was never met`);
    assert.deepEqual(this.met, [...this.met].sort().reverse());
  }
}

/** The expected records, kept beside the real ones. */
class Model {
  readonly #under: GatewayUnderTest;
  readonly #number: () => number;
  readonly #jobs = new Set<string>();
  #runs: ModelRun[] = [];
  #runWalk = new Walk([]);
  #jobWalk = new Walk([]);

  constructor(under: GatewayUnderTest, number: () => number) {
    this.#under = under;
    this.#number = number;
  }

  async prepare(): Promise<void> {
    for (let i = 0; i < 4; i++) await this.apply({ kind: "insertJob" });
    for (let i = 0; i < 9; i++) await this.apply({ kind: "insertRun", pick: i });
    const { records } = this.#under;
    // What earlier rounds have left is deleted, so that every round begins with its own items only.
    for (const one of (await records.jobs({ includeTerminal: true, limit: 200, after: null })).rows) {
      if (!this.#jobs.has(one.jobId)) await records.write((writes) => writes.deleteJob(one.jobId, 1));
    }
    this.#runWalk = new Walk(this.#runs.map((one) => one.runId));
    this.#jobWalk = new Walk(this.#jobs);
  }

  async apply(action: Action): Promise<void> {
    const { records, journal } = this.#under;
    switch (action.kind) {
      case "insertJob": {
        const one = job(this.#number());
        await withJobs(this.#under, one);
        this.#jobs.add(one.jobId);
        return;
      }
      case "insertRun":
        return this.#insertRun(action.pick);
      case "deleteJob":
        return this.#deleteJob(action.pick);
      case "launch": {
        const one = this.#pick(action.pick, (run) => !run.launched && run.status === "pending");
        if (one === undefined) return;
        await journal.commit([launch(run(one.number, one.jobId))]);
        one.launched = true;
        one.status = "running";
        return;
      }
      case "endUnlaunched": {
        const one = this.#pick(action.pick, (run) => !run.launched && run.status === "pending");
        if (one === undefined) return;
        const end = { status: "cancelled", failureJson: null } as const;
        await records.write((writes) => writes.endUnlaunched(one.runId, end, 1));
        one.status = "cancelled";
        return;
      }
      case "complete": {
        const one = this.#pick(action.pick, (run) => run.status === "running");
        if (one === undefined) return;
        await journal.commit([advance(run(one.number, one.jobId), 1, { status: "completed" })]);
        one.status = "completed";
        return;
      }
      case "purge":
        await records.purgeDeleted(3);
        return;
      case "page":
        return this.#page(action.limit);
      default:
        return action satisfies never;
    }
  }

  /** Ends the walks, and compares everything. */
  async finish(): Promise<void> {
    while (!this.#runWalk.isOver || !this.#jobWalk.isOver) await this.#page(3);
    this.#runWalk.check();
    this.#jobWalk.check();
    const { records } = this.#under;
    const all = { limit: 1_000, after: null };
    const newestFirst = [...this.#runs].sort((a, b) => b.number - a.number);
    for (const status of [null, "pending", "running", "completed", "cancelled"] as const) {
      for (const jobId of [null, ...this.#jobs]) {
        const expected = newestFirst.filter(
          (one) => (status ?? one.status) === one.status && (jobId ?? one.jobId) === one.jobId,
        );
        const found = await records.runs({ ...all, jobId, status: status && [status] });
        assert.deepEqual(
          found.rows.map((one) => [one.runId, one.status]),
          expected.map((one) => [one.runId, one.status]),
        );
      }
    }
    for (const one of (await records.jobs({ ...all, includeTerminal: true })).rows) {
      const own = newestFirst.filter((run) => run.jobId === one.jobId);
      assert.equal(one.activeRuns, own.filter(isOpen).length);
      assert.equal(one.latestRun?.runId, own[0]?.runId);
    }
    const open = await records.jobs({ ...all, includeTerminal: false });
    const isListed = (jobId: string) => {
      const latest = newestFirst.find((one) => one.jobId === jobId);
      return latest === undefined || isOpen(latest);
    };
    assert.deepEqual(
      open.rows.map((one) => one.jobId),
      [...this.#jobs].filter(isListed).sort().reverse(),
    );
  }

  async #insertRun(pick: number): Promise<void> {
    const jobId = [...this.#jobs][pick % Math.max(1, this.#jobs.size)];
    if (jobId === undefined) return;
    const number = this.#number();
    const one = run(number, jobId);
    await withRuns(this.#under, one);
    this.#runs.push({ runId: one.runId, jobId, number, status: "pending", launched: false });
  }

  async #deleteJob(pick: number): Promise<void> {
    const jobId = [...this.#jobs][pick % Math.max(1, this.#jobs.size)];
    if (jobId === undefined) return;
    assert.equal(await this.#under.records.write((writes) => writes.deleteJob(jobId, 1)), true);
    this.#jobs.delete(jobId);
    this.#jobWalk.throughout.delete(jobId);
    for (const one of this.#runs) if (one.jobId === jobId) this.#runWalk.throughout.delete(one.runId);
    this.#runs = this.#runs.filter((one) => one.jobId !== jobId);
  }

  async #page(limit: number): Promise<void> {
    const { records } = this.#under;
    const runs = { jobId: null, status: null, limit, after: this.#runWalk.after };
    if (!this.#runWalk.isOver) this.#runWalk.take((await records.runs(runs)).rows.map((one) => one.runId));
    const jobs = { includeTerminal: true, limit, after: this.#jobWalk.after };
    if (!this.#jobWalk.isOver) this.#jobWalk.take((await records.jobs(jobs)).rows.map((one) => one.jobId));
  }

  #pick(pick: number, fits: (run: ModelRun) => boolean): ModelRun | undefined {
    const fitting = this.#runs.filter(fits);
    return fitting[pick % Math.max(1, fitting.length)];
  }
}

function isOpen(run: ModelRun): boolean {
  return run.status === "pending" || run.status === "running";
}
