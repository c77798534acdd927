// A download of a model over the end of its program.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { call, startGateway } from "../support/gateway-api.ts";
import { ggufFile, text, tinyLlama, tinyTensors } from "../support/model-files.ts";
import { fileServer } from "../support/model-servers.ts";
import { temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const content = ggufFile({ ...tinyLlama, padding: text("x".repeat(6_000_000)) }, tinyTensors);
const sha256 = createHash("sha256").update(content).digest("hex");

test("a download that kill -9 has cut goes on where it was, and is whole in the end", async () => {
  const home = await temporaryHome();
  after(() => rm(home, { recursive: true, force: true }));
  await using server = await fileServer(content, [{ hangAfter: 4_000_000 }]);
  const first = await startGateway({ home });
  await call(first, "POST", "/models", {
    model_id: "cut",
    source: { url: `${server.url}/cut.gguf`, sha256 },
  });
  const { operation_id: operation } = await call(first, "POST", "/models/cut/install", {});
  const part = join(home, "models/cut/download");
  await until(
    "some of it is on the disk",
    async () => (await readFile(part).catch(() => "")).length > 2_000_000,
  );
  assert.deepEqual((await readdir(join(home, "models/cut"))).toSorted(), ["download", "download.from"]);
  await first.kill();
  const second = await startGateway({ home });
  try {
    const ended = await until("the operation has ended", async () => {
      const now = await call(second, "GET", `/operations/${operation}`);
      return now.finished_at !== null && now;
    });
    assert.equal(ended.status, "completed", JSON.stringify(ended.error));
    assert.match(server.asked.at(-1) ?? "", /bytes=[1-9]\d+-$/);
    assert.ok((await readFile(join(home, "models/cut", sha256))).equals(content));
    assert.deepEqual(await readdir(join(home, "models/cut")), [sha256]);
  } finally {
    await second.stop();
  }
});
