// The gateway's records on each kind of database, with the journal beside them.

import assert from "node:assert/strict";
import { systemClock } from "../../src/app/clock.ts";
import type { BundleRecords } from "../../src/bundles/records.ts";
import type { Journal } from "../../src/engine/journal.ts";
import type { GatewayRecords, JobDefinition, NewRun } from "../../src/launch/records.ts";
import type { JobRecords } from "../../src/runs/job-records.ts";
import type { RetentionRecords } from "../../src/runs/retention-records.ts";
import { sqlBundleRecords } from "../../src/store/sql/bundles.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { sqlJobRecords } from "../../src/store/sql/jobs.ts";
import { sqlRetentionRecords } from "../../src/store/sql/retention.ts";
import { contractOnEach, type OpenDatabase, type ContractTest as TestOf } from "./databases.ts";

export interface GatewayUnderTest {
  readonly records: GatewayRecords;
  readonly bundles: BundleRecords;
  readonly journal: Journal;
  readonly runtime: JobRecords;
  readonly retention: RetentionRecords;
  /** The same anew, with what is on disk only. */
  reopen(): Promise<GatewayUnderTest>;
  /** From now on the commit of a transaction that inserts a job fails. @returns what repairs it */
  breakCommits(): Promise<() => Promise<void>>;
}

export type ContractTest = TestOf<GatewayUnderTest>;

const gatewayOn = ({ database, journal, reopen, breakCommits }: OpenDatabase): GatewayUnderTest => ({
  records: sqlGatewayRecords(database, systemClock.soon),
  bundles: sqlBundleRecords(database),
  journal,
  runtime: sqlJobRecords(database),
  retention: sqlRetentionRecords(database),
  reopen: async () => gatewayOn(await reopen()),
  breakCommits,
});

export function gatewayContract(subject: string, ...parts: readonly ((test: ContractTest) => void)[]): void {
  contractOnEach(subject, gatewayOn, (test) => {
    for (const part of parts) part(test);
  });
}

export async function withJobs({ records }: GatewayUnderTest, ...jobs: JobDefinition[]): Promise<void> {
  await records.write(async (writes) => {
    for (const one of jobs) await writes.insertJob(one);
  });
}

export async function withRuns({ records }: GatewayUnderTest, ...runs: NewRun[]): Promise<void> {
  await records.write(async (writes) => {
    for (const one of runs) assert.equal(await writes.insertRun(one), true);
  });
}

/** Removes what removed jobs have left in rows. */
export async function withoutParts({ retention }: GatewayUnderTest): Promise<void> {
  while (await retention.removeParts(() => true)) {
    // A statement at a time.
  }
}
