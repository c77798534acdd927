// What runs are launched with: configurations in layers, made once for each revision.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startCore, type TestCore } from "../../test/support/core.ts";
import { graph, router } from "../../test/support/graphs.ts";
import type { JsonObject } from "../engine/json.ts";
import { ConfigurationSecrets } from "../security/configuration.ts";
import { ConfigurationUnreadable } from "../security/configuration-decryption.ts";
import { openSecretKey } from "../security/secret-key.ts";
import { LaunchPlans } from "./launch-plans.ts";

const quick = graph("quick", [router("in")]);

async function jobWith(core: TestCore, ofBundle: JsonObject | null, ofJob: JsonObject) {
  const files = ofBundle === null ? {} : { "config/default.json": ofBundle };
  const { bundleId } = await core.bundle(quick, files);
  const request = { source: { kind: "bundle", bundleId }, name: null, configuration: ofJob } as const;
  const draft = await core.definitions.prepareCreate(request);
  return (await core.records.write(draft.insert)).job;
}

async function configuration(core: TestCore, ofBundle: JsonObject | null, ofJob: JsonObject) {
  const { configurationJson } = await core.plans.of(await jobWith(core, ofBundle, ofJob));
  return configurationJson === null ? null : core.secrets.decrypt(JSON.parse(configurationJson));
}

test("the job's configuration overrides the bundle's, key by key", async () => {
  await using core = await startCore();
  assert.equal(await configuration(core, null, {}), null);
  assert.deepEqual(await configuration(core, { a: 1 }, {}), { a: 1 });
  assert.deepEqual(await configuration(core, null, { a: 1 }), { a: 1 });
  assert.deepEqual(
    await configuration(core, { a: 1, deep: { x: 1, y: [1, 2] } }, { b: 2, deep: { y: [3], z: null } }),
    { a: 1, b: 2, deep: { x: 1, y: [3], z: null } },
  );
});

test("a reference to a variable, and a secret, are replaced whole", async () => {
  await using core = await startCore();
  const home = { $env: "HOME" };
  assert.deepEqual(await configuration(core, { a: { x: 1 } }, { a: home }), { a: home });
  assert.deepEqual(await configuration(core, { a: home }, { a: { x: 1 } }), { a: { x: 1 } });
  assert.deepEqual(await configuration(core, { token: { user: "u", pass: "p" } }, { token: "s3cret" }), {
    token: "s3cret",
  });
});

test("no secret leaves in plaintext, whether the bundle or the job has it", async () => {
  await using core = await startCore();
  const job = await jobWith(core, { api_key: "s3cret-one" }, { password: "s3cret-two" });
  const { configurationJson } = await core.plans.of(job);
  assert.doesNotMatch(configurationJson ?? "", /s3cret/);
});

test("thousands of runs of one revision share a configuration; the next revision has its own", async () => {
  await using core = await startCore();
  const job = await jobWith(core, null, { token: "s3cret" });
  const { configurationJson } = await core.plans.of(job);
  // Sealing is never the same twice, so equal texts were made once.
  assert.equal((await core.plans.of(job)).configurationJson, configurationJson);
  const next = await core.definitions.update(job, { resolved_configuration: { language: "de" } });
  const later = JSON.parse((await core.plans.of(next)).configurationJson ?? "{}");
  assert.deepEqual(await core.secrets.decrypt(later), { token: "s3cret", language: "de" });
});

test("configurations that are large are not all kept", async () => {
  await using core = await startCore();
  const large = "x".repeat(3 * 1024 * 1024);
  const jobs = [];
  for (let n = 0; n < 3; n++) jobs.push(await jobWith(core, null, { token: "s3cret", n, large }));
  const first = (await core.plans.of(jobs[0]!)).configurationJson;
  for (const job of jobs.slice(1)) await core.plans.of(job);
  assert.notEqual((await core.plans.of(jobs[0]!)).configurationJson, first, "made again");
});

test("a secret that was encrypted with another key is reported as unreadable", async () => {
  await using core = await startCore();
  const job = await jobWith(core, null, { token: "s3cret" });
  const otherKey = await openSecretKey({ home: core.home, given: [Buffer.alloc(32, 3).toString("base64")] });
  const plans = new LaunchPlans({
    bundles: core.bundles,
    secrets: new ConfigurationSecrets(otherKey),
    preparation: core.preparation,
  });
  await assert.rejects(plans.of(job), (error: unknown) => error instanceof ConfigurationUnreadable);
});
