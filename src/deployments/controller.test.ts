// When the controller looks for deployments, in simulated time. What it does to them is simulated whole (test/simulation).

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Timeline } from "../../test/simulation/timeline.ts";
import { job } from "../../test/support/gateway-samples.ts";
import type { GatewayWrites } from "../launch/records.ts";
import { DomainError } from "../lib/domain-error.ts";
import { EventFeed } from "../runs/feed.ts";
import { ConfigurationSecrets } from "../security/configuration.ts";
import { SecretKey } from "../security/secret-key.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { DeploymentController } from "./controller.ts";
import { Deployments } from "./deployments.ts";
import { defaultStrategy } from "./records.ts";

const secrets = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 7)));

let time: Timeline;
let looks: number;
let duties: number;
/** What happens between a look at the records and what is done by it. */
let meanwhile: () => Promise<void>;
let controller: DeploymentController<GatewayWrites>;
let make: () => Promise<void>;

beforeEach(() => {
  time = new Timeline();
  [looks, duties] = [0, 0];
  meanwhile = async () => {};
  const clock = {
    nowMs: () => time.nowMs,
    steadyMs: () => time.nowMs,
    after: (delayMs: number, run: () => void) => time.plan(delayMs, null, run),
    soon: (run: () => void) => void time.plan(0, null, run),
  };
  const stored = sqlGatewayRecords(openSqlite(":memory:"), (done) => void setImmediate().then(done));
  const records = {
    ...stored,
    deployments: {
      ...stored.deployments,
      async deploymentChanges(after: string, limit: number) {
        looks++;
        const found = await stored.deployments.deploymentChanges(after, limit);
        await meanwhile();
        return found;
      },
    },
  };
  controller = new DeploymentController<GatewayWrites>({
    records,
    runs: {
      prepare: () => Promise.reject(new DomainError("unavailable", "Not in this test.")),
      places: async () => [],
      accepted: () => {},
      cancel: async () => {},
      cancelled: () => {},
    },
    services: { list: async () => ({ services: [], unreachable: [] }) },
    feed: new EventFeed(),
    meter: { stepped: () => {} },
    closed: () => null,
    takeDuty: async () => {
      duties++;
      return true;
    },
    clock,
    log: { warn: () => {}, error: () => {} },
  });
  const deployments = new Deployments<GatewayWrites>({
    records,
    draftVersion: async ({ config }) => ({
      services: 1,
      config,
      async insert(writes) {
        await writes.insertJob(job(1));
        return job(1).jobId;
      },
      created: () => {},
    }),
    secrets,
    nowMs: () => controller.nowMs(),
    clock,
    newId: () => "1",
  });
  make = async () => {
    const source = { kind: "bundle", bundleId: "bundle_1" } as const;
    const given = { name: "n", count: 1, strategy: defaultStrategy, source, config: {} };
    const draft = await deployments.prepareCreate(given);
    const { deployment, lines } = await records.write((writes) => draft.insert(writes));
    controller.changed(deployment, lines);
  };
  controller.start();
});

async function pass(ms: number): Promise<void> {
  time.plan(ms, null, () => {});
  for (const endMs = time.nowMs + ms; time.nowMs < endMs; ) await time.step();
}

test("without deployments it looks every ten seconds, and nobody is on duty", async () => {
  await pass(60_000);
  assert.deepEqual([looks, duties], [6, 0]);
});

test("the first deployment is looked after at once", async () => {
  await pass(5_000);
  await make();
  await pass(1);
  assert.equal(duties, 1);
});

test("so is one that is made while it looks, in the next round", async () => {
  const made = new Promise<void>((resolve, reject) => {
    meanwhile = () => {
      meanwhile = async () => {};
      return make().then(resolve, reject);
    };
  });
  await time.step();
  await made;
  await setImmediate();
  await pass(2_000);
  await pass(1);
  assert.equal(duties, 1);
});
