// The contract of the gateway's records (src/launch/records.ts): jobs, groups of writes, stored responses, bundles.

import assert from "node:assert/strict";
import {
  type ContractTest,
  gatewayContract,
  withJobs,
  withRuns,
} from "../../../test/support/gateway-records.ts";
import { idempotencyRecord, job, run } from "../../../test/support/gateway-samples.ts";
import type { IdempotencyRecord } from "../../launch/records.ts";

gatewayContract(
  "the gateway's records",
  definitionsContract,
  groupsContract,
  idempotencyContract,
  bundlesContract,
);

function definitionsContract(test: ContractTest): void {
  test("a job that was inserted is found as it was, also after reopening", async (under) => {
    const fromBlueprint = job(2, { source: { kind: "blueprint", blueprintId: "digest" }, extensions: [] });
    await withJobs(under, job(1), fromBlueprint);
    const { records } = await under.reopen();
    const none = { latestRun: null, activeRuns: 0 };
    assert.deepEqual(await records.job("job_0001"), { ...job(1), ...none });
    assert.deepEqual(await records.job("job_0002"), { ...fromBlueprint, ...none });
    assert.equal(await records.job("job_0003"), null);
  });

  test("an update lands on the revision it was made for, or not at all", async (under) => {
    const { records } = under;
    await withJobs(under, job(1), job(2));
    const second = job(1, {
      name: "new",
      status: "failed_preparation",
      configurationJson: "{}",
      revision: 2,
      updatedAtMs: 9,
    });
    assert.equal(await records.write((writes) => writes.updateJob(second, 1)), true);
    const late = job(1, { name: "late", revision: 2 });
    assert.equal(await records.write((writes) => writes.updateJob(late, 1)), false);
    assert.equal(await records.write((writes) => writes.updateJob(job(3), 1)), false);
    assert.deepEqual(await records.job("job_0001"), { ...second, latestRun: null, activeRuns: 0 });
    assert.equal((await records.job("job_0002"))?.name, "job 2");
  });

  test("an update keeps what is derived from the job's runs", async (under) => {
    await withJobs(under, job(1));
    await withRuns(under, run(1, "job_0001"));
    await under.records.write((writes) => writes.updateJob(job(1, { revision: 2 }), 1));
    const found = await under.records.job("job_0001");
    assert.deepEqual([found?.latestRun?.runId, found?.activeRuns], ["run_0001", 1]);
  });

  test("a deleted job and its runs are not found any more, and cannot be changed", async (under) => {
    const { records } = under;
    await withJobs(under, job(1), job(2));
    await withRuns(under, run(1, "job_0001"), run(2, "job_0002"));
    assert.equal(await records.write((writes) => writes.deleteJob("job_0001", 7)), false);
    assert.notEqual(await records.job("job_0001"), null);
    assert.equal(await records.write((writes) => writes.deleteJob("job_0001", 1)), true);

    assert.equal(await records.job("job_0001"), null);
    assert.equal(await records.run("run_0001"), null);
    assert.equal(await records.latestRun("job_0001"), null);
    assert.deepEqual(await records.recentRuns("job_0001", 9), []);
    const all = { limit: 9, after: null };
    const runs = await records.runs({ ...all, jobId: null, status: null });
    assert.deepEqual(
      runs.rows.map((one) => one.runId),
      ["run_0002"],
    );
    assert.deepEqual((await records.runs({ ...all, jobId: "job_0001", status: null })).rows, []);
    assert.equal((await records.jobs({ ...all, includeTerminal: true })).rows.length, 1);

    const changed = await records.write(async (writes) => [
      await writes.updateJob(job(1, { revision: 2 }), 1),
      await writes.deleteJob("job_0001", 1),
      await writes.insertRun(run(3, "job_0001")),
      (await writes.job("job_0001")) !== null,
      (await writes.run("run_0001")) !== null,
    ]);
    assert.deepEqual(changed, [false, false, false, false, false]);
  });
}

function groupsContract(test: ContractTest): void {
  test("a part of a work that fails alone leaves nothing of itself, and the rest of the work is kept", async (under) => {
    const { records } = under;
    const reasons = await records.write(async (writes) => {
      await writes.insertJob(job(1));
      const failing = writes.apart(async () => {
        await writes.insertJob(job(2));
        await writes.apart(() => writes.insertJob(job(3)));
        throw new Error("no");
      });
      const reason = await failing.catch(String);
      await writes.apart(() => writes.insertJob(job(4)));
      return reason;
    });
    assert.equal(reasons, "Error: no");
    const { rows } = await (await under.reopen()).records.jobs({
      includeTerminal: true,
      limit: 9,
      after: null,
    });
    assert.deepEqual(
      rows.map(({ jobId }) => jobId),
      ["job_0004", "job_0001"],
    );
  });

  test("works asked for at one moment run one after the other, in order, and each sees the earlier ones", async (under) => {
    const { records } = under;
    const order: string[] = [];
    const seen = await Promise.all(
      [1, 2, 3].map((n) =>
        records.write(async (writes) => {
          order.push(`${n} begins`);
          await writes.insertJob(job(n));
          const before = n === 1 ? null : await writes.job(`job_000${n - 1}`);
          order.push(`${n} ends`);
          return before?.name ?? null;
        }),
      ),
    );
    assert.deepEqual(seen, [null, "job 1", "job 2"]);
    assert.deepEqual(order, ["1 begins", "1 ends", "2 begins", "2 ends", "3 begins", "3 ends"]);
  });

  test("a work that throws leaves nothing, and the others of its moment are unharmed", async (under) => {
    const { records } = under;
    const refusal = new Error("refused");
    const answers = await Promise.allSettled([
      records.write((writes) => writes.insertJob(job(1))),
      records.write(async (writes) => {
        await writes.insertJob(job(2));
        await writes.insertRun(run(1, "job_0001"));
        throw refusal;
      }),
      records.write((writes) => writes.insertJob(job(1))),
      records.write(async (writes) => [
        await writes.job("job_0002"),
        (await writes.job("job_0001"))?.activeRuns,
      ]),
    ]);
    assert.deepEqual(
      answers.map((answer) => answer.status),
      ["fulfilled", "rejected", "rejected", "fulfilled"],
    );
    assert.equal(answers[1]?.status === "rejected" && answers[1].reason, refusal);
    assert.deepEqual(answers[3]?.status === "fulfilled" && answers[3].value, [null, 0]);
    const again = await under.reopen();
    assert.notEqual(await again.records.job("job_0001"), null);
    assert.equal(await again.records.job("job_0002"), null);
  });

  test("when the commit fails, every work of the moment rejects, and nothing of them is there", async (under) => {
    const { records, journal } = under;
    const repair = await under.breakCommits();
    const answers = await Promise.allSettled([
      records.write((writes) => writes.saveIdempotency(idempotencyRecord(), 0)),
      records.write((writes) => writes.insertJob(job(1))),
      records.write((writes) => writes.saveIdempotency(idempotencyRecord({ key: "key-2" }), 0)),
    ]);
    for (const answer of answers) assert.equal(answer.status, "rejected");
    assert.equal(await records.job("job_0001"), null);
    assert.equal(await records.idempotency(idempotencyRecord().scope, "key-1"), null);
    await repair();
    await withJobs(under, job(1));
    await withRuns(under, run(1, "job_0001"));
    assert.deepEqual(await journal.commit([]), { lost: [], unwritable: [] });
    assert.equal((await records.job("job_0001"))?.activeRuns, 1);
  });

  test("writes of a work are not visible outside before the commit", async ({ records }) => {
    const seen: Promise<unknown>[] = [];
    await records.write(async (writes) => {
      await writes.insertJob(job(1));
      seen.push(records.job("job_0001"));
      await writes.deleteJob("job_0001", 1);
    });
    assert.deepEqual(await Promise.all(seen), [null]);
  });
}

function idempotencyContract(test: ContractTest): void {
  test("a stored response is found by scope and key, also after reopening", async (under) => {
    const first = idempotencyRecord({ body: '"ä\\n"' });
    await under.records.write((writes) => writes.saveIdempotency(first, 0));
    const { records } = await under.reopen();
    assert.deepEqual(await records.idempotency(first.scope, first.key), first);
    assert.equal(await records.idempotency(first.scope, "other"), null);
    assert.equal(await records.idempotency("other", first.key), null);
  });

  test("a response replaces one with the same key that has expired, and no other", async ({ records }) => {
    const first = idempotencyRecord();
    const save = (record: IdempotencyRecord, expiredMs: number) =>
      records.write((writes) => writes.saveIdempotency(record, expiredMs));
    assert.equal(await save(first, 0), true);
    const second = idempotencyRecord({
      requestHash: "h2",
      status: 201,
      headersJson: "{}",
      body: "2",
      createdAtMs: 9,
    });
    assert.equal(await save(second, first.createdAtMs - 1), false);
    assert.deepEqual(await records.idempotency(first.scope, first.key), first);
    assert.equal(await save(second, first.createdAtMs), true);
    assert.deepEqual(await records.idempotency(second.scope, second.key), second);
  });

  test("of works with one key at one moment the first keeps its response", async ({ records }) => {
    const answer = (body: string) =>
      records.write((writes) => writes.saveIdempotency(idempotencyRecord({ body }), 0));
    assert.deepEqual(await Promise.all([answer("1"), answer("2"), answer("3")]), [true, false, false]);
    const { scope, key } = idempotencyRecord();
    assert.equal((await records.idempotency(scope, key))?.body, "1");
  });

  test("old responses are removed, oldest first, a few at a time", async ({ records }) => {
    await records.write(async (writes) => {
      for (const n of [3, 1, 2, 9])
        await writes.saveIdempotency(idempotencyRecord({ key: `k${n}`, createdAtMs: n }), 0);
    });
    assert.equal(await records.forgetIdempotency(9, 2), 2);
    assert.equal(await records.idempotency(idempotencyRecord().scope, "k1"), null);
    assert.notEqual(await records.idempotency(idempotencyRecord().scope, "k3"), null);
    assert.equal(await records.forgetIdempotency(9, 2), 1);
    assert.equal(await records.forgetIdempotency(9, 2), 0);
    assert.notEqual(await records.idempotency(idempotencyRecord().scope, "k9"), null);
  });
}

function bundlesContract(test: ContractTest): void {
  const bundle = (n: number, createdAtMs: number) => ({
    bundleId: `bundle_${n}`,
    fingerprint: "0".repeat(64),
    graphId: "g",
    name: `bundle ${n}`,
    source: { kind: "zip" } as const,
    sizeBytes: 5,
    createdAtMs,
    updatedAtMs: createdAtMs,
  });

  test("bundles are listed newest first, those of one moment by id, each once", async ({ records }) => {
    await records.write(async (writes) => {
      for (const [n, at] of [
        [1, 7],
        [2, 9],
        [3, 7],
        [4, 1],
      ] as const)
        await writes.saveBundle(bundle(n, at));
    });
    const ids: string[] = [];
    let after: { createdAtMs: number; bundleId: string } | null = null;
    for (;;) {
      const page = await records.bundles({ limit: 1, after });
      const [last] = page;
      if (last === undefined) break;
      ids.push(last.bundleId);
      after = last;
    }
    assert.deepEqual(ids, ["bundle_2", "bundle_3", "bundle_1", "bundle_4"]);
  });

  test("a bundle is deleted once no job that is not deleted was made from it", async (under) => {
    const { records, bundles } = under;
    await records.write((writes) => writes.saveBundle(bundle(1, 1)));
    await withJobs(under, job(1));
    assert.equal(await bundles.deleteUnused("bundle_1"), "in_use");
    assert.notEqual(await bundles.get("bundle_1"), null);
    await records.write((writes) => writes.deleteJob("job_0001", 1));
    assert.equal(await bundles.deleteUnused("bundle_1"), "deleted");
    assert.equal(await bundles.get("bundle_1"), null);
    assert.equal(await bundles.deleteUnused("bundle_1"), "missing");
  });

  test("a bundle's record can be replaced; its time of creation stays", async ({ records }) => {
    await records.write((writes) => writes.saveBundle(bundle(1, 1)));
    await records.write((writes) => writes.saveBundle({ ...bundle(1, 8), name: "again" }));
    const found = await records.write((writes) => writes.bundle("bundle_1"));
    assert.deepEqual([found?.name, found?.createdAtMs, found?.updatedAtMs], ["again", 1, 8]);
  });
}
