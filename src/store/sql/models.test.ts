// The contract of models (src/models/records.ts).

import assert from "node:assert/strict";
import { contractOnEach } from "../../../test/support/databases.ts";
import { systemClock } from "../../app/clock.ts";
import type { BlueprintAsset } from "../../blueprints/records.ts";
import type { ModelInstallation, ModelRegistration } from "../../models/records.ts";
import { sqlBlueprintRecords } from "./blueprints.ts";
import { sqlGatewayRecords } from "./gateway.ts";
import { sqlModelRecords } from "./models.ts";

/** Everything that may be null is something. */
const full: ModelRegistration = {
  modelId: "qwen/3 4b",
  name: "Qwen3",
  family: "qwen3",
  source: { url: "https://example.com/q.gguf", sha256: "aa" },
  sha256: "aa",
  license: "apache-2.0",
  parameters: 4_000_000_000,
  quantisation: "Q4_K_M",
  context: 32_768,
  requirements: { memory_bytes: 5_000_000_000 },
  content: {
    sha256: "aa",
    bytes: 3_000_000_000,
    format: "gguf",
    architecture: "qwen3",
    license: null,
    parameters: 4_000_000_000,
    quantisation: "Q4_K_M",
    context: 32_768,
    tokenizer: "gpt2",
    vocabulary: 151_936,
    hasChatTemplate: true,
  },
  revision: 3,
  createdAtMs: 1,
  updatedAtMs: 2,
};
const bare: ModelRegistration = {
  ...full,
  modelId: "bare",
  family: null,
  sha256: null,
  license: null,
  parameters: null,
  quantisation: null,
  context: null,
  requirements: null,
  content: null,
};
const installation: ModelInstallation = {
  installationId: "installation_1",
  modelId: full.modelId,
  nodeId: "node_a",
  state: "failed",
  operationId: "op_1",
  sha256: "aa",
  bytes: 7,
  pinned: true,
  error: { code: "model_failed", detail: "no", retryable: true },
  revision: 2,
  createdAtMs: 3,
  updatedAtMs: 4,
};
const asset: BlueprintAsset = {
  blueprintId: "digest",
  kind: "model",
  assetId: full.modelId,
  recipe: "bb",
  ready: true,
  bytes: 1,
  createdAtMs: 1,
};

contractOnEach(
  "the records of models",
  async ({ database }) => {
    const { write } = sqlGatewayRecords(database, systemClock.soon);
    const models = sqlModelRecords(database);
    await write(async (writes) => {
      await writes.models.save(full);
      await writes.models.save(bare);
      await writes.models.saveInstallation(installation);
    });
    return { write, models, blueprints: sqlBlueprintRecords(database) };
  },
  (test) => {
    test("a model comes back as it was written, with where it is installed and who brought it", async ({
      write,
      models,
    }) => {
      assert.deepEqual(await models.model("bare"), { ...bare, installations: [], blueprints: [] });
      const half = { ...asset, blueprintId: "half", ready: false };
      await write(async ({ blueprints }) => {
        for (const one of [asset, half]) await blueprints.saveAsset(one);
      });
      const expected = { ...full, installations: [installation], blueprints: ["digest"] };
      assert.deepEqual(await models.model(full.modelId), expected);
      assert.deepEqual(await write((writes) => writes.models.model(full.modelId)), expected);
      assert.equal(await models.model("none"), null);
    });

    test("lists are in the order of the ids, a page at a time", async ({ models }) => {
      const [first] = await models.models({ limit: 1, after: null });
      assert.equal(first?.modelId, "bare");
      const behind = await models.models({ limit: 5, after: "bare" });
      assert.deepEqual(
        behind.map(({ modelId, installations }) => [modelId, installations.length]),
        [[full.modelId, 1]],
      );
    });

    test("a model has at most one installation on a node, which is saved and removed", async ({
      write,
      models,
    }) => {
      const second = { ...installation, installationId: "installation_2" };
      await assert.rejects(write((writes) => writes.models.saveInstallation(second)));
      const now = { ...installation, state: "installed", error: null, pinned: false } as const;
      await write((writes) => writes.models.saveInstallation(now));
      assert.deepEqual(await models.installation("installation_1"), now);
      assert.deepEqual(await models.installationOn(full.modelId, "node_a"), now);
      assert.deepEqual(await models.allInstallations(), [now]);
      await write((writes) => writes.models.removeInstallation("installation_1"));
      assert.equal(await models.installationOn(full.modelId, "node_a"), null);
      await write((writes) => writes.models.remove(full.modelId));
      assert.equal(await models.model(full.modelId), null);
    });

    test("content that is installed has an owner, also when no blueprint has it", async ({ blueprints }) => {
      assert.equal(await blueprints.installedModel(full.modelId), "aa");
      assert.equal(await blueprints.installedModel("bare"), null);
      assert.equal(await blueprints.hasModelFile(full.modelId, "aa", ""), true);
      assert.equal(await blueprints.hasModelFile(full.modelId, "bb", ""), false);
    });
  },
);
