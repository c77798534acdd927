// Manifests that are submitted again: the second time they are known by their text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { scheduler } from "node:timers/promises";
import { executor, graph, router } from "../../test/support/graphs.ts";
import { servicesLacking } from "../../test/support/services.ts";
import type { Graph } from "../engine/graph.ts";
import type { JsonObject } from "../engine/json.ts";
import { ConfigurationSecrets } from "../security/configuration.ts";
import { SecretKey } from "../security/secret-key.ts";
import { knownManifest, submittedManifest } from "./submissions.ts";

const secrets = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 7)));

/** @param failing names of the services that are not passing; the test may change it */
function parts(failing: ReadonlySet<string> = new Set()) {
  const services = servicesLacking((required) =>
    required.flatMap(({ name }) =>
      failing.has(name) ? [{ service: name, reason: `${name} is not passing.` }] : [],
    ),
  );
  return {
    secrets,
    services,
    capacity: { refuseUnsatisfiable: async (_graph: Graph) => {} },
    declaredModels: { refuseUnserved: async (_graph: Graph) => {} },
  };
}

const submit = (manifest: JsonObject, of = parts()) =>
  submittedManifest(of, manifest, JSON.stringify(manifest));

test("a manifest that is submitted again is the same graph, and is found without being read", async () => {
  const manifest = graph("again", [router("start")]);
  assert.equal(knownManifest(JSON.stringify(manifest)), null);
  const first = await submit(manifest);
  assert.equal(knownManifest(JSON.stringify(manifest))?.graph, first.graph);
  assert.equal((await submit(manifest)).graph, first.graph);
  assert.notEqual((await submit(graph("other", [router("start")]))).graph, first.graph);
});

test("a manifest with secrets is encrypted anew each time", async () => {
  const inputs = { initial_inputs: { start: [{ api_key: "sk-hidden" }] } };
  const manifest = graph("secret", [router("start")], [], inputs);
  const [first, second] = [await submit(manifest), await submit(manifest)];
  assert.ok(!first.manifestJson.includes("sk-hidden") && !second.manifestJson.includes("sk-hidden"));
  assert.notEqual(first.manifestJson, second.manifestJson);
  assert.equal(knownManifest(JSON.stringify(manifest)), null);
});

test("a manifest with large inputs is read with pauses for other work, and a small one without", async (t) => {
  const pauses = t.mock.method(scheduler, "yield");
  const inputs = (chars: number) => ({ initial_inputs: { start: [{ text: "x".repeat(chars) }] } });
  await submit(graph("small", [router("start")], [], inputs(100)));
  assert.equal(pauses.mock.callCount(), 0);
  const large = await submit(graph("large", [router("start")], [], inputs(300_000)));
  assert.equal(pauses.mock.callCount(), 2);
  assert.equal(large.graph.graphId, "large");
});

test("a manifest that was submitted before is refused while a service that it requires is not passing", async () => {
  const failing = new Set<string>();
  const manifest = graph("needy", [executor("start", ["true"])], [], {
    required_services: [{ name: "database" }],
  });
  await submit(manifest, parts(failing));
  failing.add("database");
  await assert.rejects(submit(manifest, parts(failing)), { code: "requirements_not_met" });
  assert.equal(knownManifest(JSON.stringify(manifest)), null);
});

test("only the latest manifests are known", async () => {
  const oldest = graph("number-0", [router("start")]);
  await submit(oldest);
  for (let i = 1; i <= 100; i++) await submit(graph(`number-${i}`, [router("start")]));
  assert.equal(knownManifest(JSON.stringify(oldest)), null);
});

test("a manifest that asks for resources is looked at each time: the machines and their limits may change", async () => {
  const refused: string[] = [];
  const of = {
    ...parts(),
    capacity: {
      refuseUnsatisfiable: async ({ graphId }: Graph) => {
        refused.push(graphId);
      },
    },
  };
  const manifest = graph("large", [{ ...executor("a", ["true"]), resources: { cpu: 1 } }]);
  await submit(manifest, of);
  assert.equal(knownManifest(JSON.stringify(manifest)), null);
  await submit(manifest, of);
  assert.deepEqual(refused, ["large", "large"]);
});
