// The gateway's part of a running program: durable jobs, their runs, and what looks after them.

import { randomBytes } from "node:crypto";
import { IDEMPOTENCY_MS, IdempotentRequests } from "./api/shared/idempotency.ts";
import { Paging } from "./api/shared/paging.ts";
import type { Core } from "./app-core.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import { Definitions } from "./jobs/definitions.ts";
import { Housekeeping } from "./jobs/housekeeping.ts";
import { LaunchPlans } from "./jobs/launch-plans.ts";
import { Launcher } from "./jobs/launcher.ts";
import { RunEnds } from "./jobs/run-ends.ts";
import { Runs } from "./jobs/runs.ts";
import { KeyedTurns } from "./keyed-turns.ts";
import { SqlRecordCounter } from "./store/gateway-counts.ts";

export type Gateway = ReturnType<typeof openGateway>;

/** Durable jobs and their runs. They are looked after whatever API is served: their runs are the engine's. */
export function openGateway(core: Core) {
  const { bundles, engine, feed, secrets, store, gatewayRecords: records, engineLog: log } = core;
  const clock = systemClock;
  const ends = new RunEnds({ records, feed, clock });
  const plans = new LaunchPlans({ bundles, secrets });
  const turns = new KeyedTurns();
  const launcher = new Launcher({ records, plans, engine, ends, turns, clock, log });
  const newId = systemRandomness.id;
  const newTraceId = () => randomBytes(16).toString("hex");
  const runs = new Runs({ records, bundles, launcher, turns, clock, newId, newTraceId });
  const definitions = new Definitions({
    records,
    bundles,
    runs,
    secrets,
    clock,
    newId,
    collectGarbage: async () => void (await core.cleanup.collectGarbage()),
    log,
  });
  const housekeeping = new Housekeeping({
    records,
    definitions,
    clock,
    log,
    idempotencyMs: IDEMPOTENCY_MS,
  });
  return {
    records,
    counter: new SqlRecordCounter(core.database),
    storeProblem: () => store.problem(),
    definitions,
    runs,
    launcher,
    idempotency: new IdempotentRequests({ records, nowMs: clock.nowMs }),
    paging: new Paging({ key: core.key.derive("page tokens"), nowMs: clock.nowMs }),
    async start() {
      await launcher.recover();
      housekeeping.start();
    },
    async stop() {
      await launcher.stop();
      await housekeeping.stop();
    },
  };
}
