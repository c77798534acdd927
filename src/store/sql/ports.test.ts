// The contract of runs' ports (src/web/records.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { fc } from "../../../test/support/fast-check.ts";
import { advance, job, launch, run } from "../../../test/support/gateway-samples.ts";
import { systemClock } from "../../app/clock.ts";
import type { Journal } from "../../engine/journal.ts";
import type { GatewayRecords } from "../../launch/records.ts";
import type { PortRecords } from "../../web/records.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { sqlPortRecords } from "./ports.ts";

interface PortsUnderTest {
  readonly ports: PortRecords;
  readonly records: GatewayRecords;
  readonly journal: Journal;
}

const JOB = "job_0001";

/** A run that asks for one of these ports, in one transaction. @returns null when it was given none, and is not made */
function launchOne(
  { records }: PortsUnderTest,
  n: number,
  candidates: readonly number[],
): Promise<number | null> {
  return records.write(async (writes) => {
    const port = await writes.ports.reserve(run(n, JOB).runId, "web_ui", candidates);
    if (port !== null) assert.equal(await writes.insertRun(run(n, JOB)), true);
    return port;
  });
}

function cancelOne({ records }: PortsUnderTest, n: number, nowMs = 9_000): Promise<void> {
  const end = { status: "cancelled", failureJson: null } as const;
  return records.write((writes) => writes.endUnlaunched(run(n, JOB).runId, end, nowMs));
}

const range = (count: number, from = 61_000) => Array.from({ length: count }, (_, i) => from + i);

contractOnEach(
  "the records of ports",
  async ({ database, journal }) => {
    const records = sqlGatewayRecords(database, systemClock.soon);
    await records.write((writes) => writes.insertJob(job(1)));
    return { ports: sqlPortRecords(database), records, journal };
  },
  (test) => {
    test("of 51 launches at once over 50 ports, 50 get one each and one gets none; the next end frees its port", async (under) => {
      const given = await Promise.all(range(51, 1).map((n) => launchOne(under, n, range(50))));
      assert.deepEqual(given.filter((port) => port !== null).toSorted(), range(50));
      assert.equal(given.filter((port) => port === null).length, 1);
      assert.deepEqual(await under.ports.portsInUse(), new Set(range(50)));
      const seventh = given[6]!;
      await cancelOne(under, 7);
      assert.deepEqual(await under.ports.portsInUse(), new Set(range(50).filter((port) => port !== seventh)));
      assert.equal(await launchOne(under, 60, range(50)), seventh);
      assert.equal(await launchOne(under, 61, range(50)), null);
    });

    test("candidates are taken in their order, and no other port is assigned", async (under) => {
      assert.equal(await launchOne(under, 1, [61_004, 61_001]), 61_004);
      assert.equal(await launchOne(under, 2, [61_004, 61_001]), 61_001);
      assert.equal(await launchOne(under, 3, [61_004, 61_001]), null);
      assert.equal(await launchOne(under, 4, []), null);
    });

    test("a run keeps its port from its acceptance to the batch that ends it, however it ends", async (under) => {
      assert.equal(await launchOne(under, 1, [61_000]), 61_000);
      const first = run(1, JOB);
      await under.journal.commit([launch(first)]);
      assert.equal(await launchOne(under, 2, [61_000]), null);
      assert.deepEqual(await under.ports.portsOf(first.runId), new Map([["web_ui", 61_000]]));
      await under.journal.commit([advance(first, 1, { status: "paused" })]);
      assert.equal(await launchOne(under, 2, [61_000]), null);
      await under.journal.commit([advance(first, 2, { status: "failed", updatedAtMs: 7_000 })]);
      assert.deepEqual(await under.ports.portsInUse(), new Set());
      assert.deepEqual(await under.ports.portsFreedSince(7_000), new Set([61_000]));
      assert.deepEqual(await under.ports.portsFreedSince(7_001), new Set());
      assert.equal(await launchOne(under, 2, [61_000]), 61_000);
      assert.deepEqual(await under.ports.portsFreedSince(0), new Set());
      assert.deepEqual(await under.ports.portsOf(first.runId), new Map());
    });

    test("a port that was assigned in a failed transaction stays free", async (under) => {
      const { records, ports } = under;
      const failing = records.write(async (writes) => {
        await writes.ports.reserve("run_0001", "web_ui", [61_000]);
        await writes.insertRun(run(1, JOB));
        throw new Error("no");
      });
      await assert.rejects(failing, /no/);
      assert.deepEqual(await ports.portsOf("run_0001"), new Map());
      assert.equal(await launchOne(under, 2, [61_000]), 61_000);
    });

    test("the port of an ended run is told with it until a run is given the port again", async (under) => {
      const { ports } = under;
      for (const n of [1, 2, 3]) await launchOne(under, n, range(3));
      await cancelOne(under, 1, 1_000);
      await cancelOne(under, 2, 2_000);
      assert.deepEqual(await ports.portsOfEnded(2_000), [{ port: 61_000, runId: run(1, JOB).runId }]);
      assert.equal((await ports.portsOfEnded(3_000)).length, 2);
      await launchOne(under, 4, [61_000]);
      assert.deepEqual(await ports.portsOfEnded(3_000), [{ port: 61_001, runId: run(2, JOB).runId }]);
    });

    test("whatever begins and ends in whatever order, no two open runs have one port, and none is refused in vain", async (under) => {
      const steps = fc.array(
        fc.oneof(
          fc.record({ kind: fc.constant("launch" as const), count: fc.integer({ min: 1, max: 6 }) }),
          fc.record({ kind: fc.constant("end" as const), which: fc.nat() }),
        ),
        { maxLength: 25 },
      );
      let n = 0;
      await fc.assert(
        fc.asyncProperty(steps, async (given) => {
          const open = new Map<number, number>();
          for (const step of given) {
            if (step.kind === "end") {
              const ended = [...open.keys()][step.which % Math.max(1, open.size)];
              if (ended !== undefined) await cancelOne(under, ended);
              if (ended !== undefined) open.delete(ended);
              continue;
            }
            const runs = range(step.count, n + 1);
            n += step.count;
            const expected = Math.min(step.count, 8 - open.size);
            const ports = await Promise.all(runs.map((one) => launchOne(under, one, range(8))));
            for (const [i, port] of ports.entries()) if (port !== null) open.set(runs[i]!, port);
            assert.equal(ports.filter((port) => port !== null).length, expected);
            assert.equal(new Set(open.values()).size, open.size);
          }
          assert.deepEqual(await under.ports.portsInUse(), new Set(open.values()));
          for (const one of open.keys()) await cancelOne(under, one);
        }),
        { numRuns: 40 },
      );
    });
  },
);
