// Models on disk: what is installed is whole, what the manifest declares, and nothing half-done stays.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { OperationFailed } from "../operations/failures.ts";
import { type FileRequest, ModelFiles } from "./model-files.ts";

const home = await mkdtemp(join(tmpdir(), "models-"));
after(() => rm(home, { recursive: true, force: true }));
const payload = join(home, "payload");
const source = join(payload, "tiny.bin");
/** More than is copied in one call. */
const content = Buffer.alloc(5 * 1024 * 1024, "weights");
const sha256 = createHash("sha256").update(content).digest("hex");

async function request(modelId: string, given: Partial<FileRequest> = {}): Promise<FileRequest> {
  await mkdir(payload, { recursive: true });
  await writeFile(source, content);
  return {
    modelId,
    path: source,
    sha256: null,
    knownSha256: "",
    signal: new AbortController().signal,
    progress: () => {},
    ...given,
  };
}

const failedAs = (message: RegExp) => (error: unknown) =>
  error instanceof OperationFailed && error.code === "model_failed" && message.test(error.message);

test("a model is a read-only copy under its content's name, and its progress ends with its size", async () => {
  const reports: number[] = [];
  const asked = await request("whole", { progress: (bytes) => void reports.push(bytes) });
  assert.deepEqual(await new ModelFiles(home).install(asked, async () => {}), {
    sha256,
    bytes: content.length,
  });
  const file = join(home, "models/whole", sha256);
  assert.ok((await readFile(file)).equals(content));
  assert.equal((await stat(file)).mode & 0o777, 0o400);
  assert.deepEqual(
    reports,
    reports.toSorted((a, b) => a - b),
  );
  assert.equal(reports.at(-1), content.length);
});

test("a file that changes while it is copied, or is not what is declared, is not installed", async () => {
  const models = new ModelFiles(home);
  let hasGrown = false;
  const growing = await request("growing", {
    progress: () => {
      if (!hasGrown) appendFileSync(source, "more");
      hasGrown = true;
    },
  });
  await assert.rejects(
    models.install(growing, () => assert.fail("it has no owner")),
    failedAs(/changed while it was copied/),
  );
  const other = await request("other", { sha256: "0".repeat(64) });
  await assert.rejects(
    models.install(other, () => assert.fail("it has no owner")),
    failedAs(/SHA-256/),
  );
  for (const modelId of ["growing", "other"]) {
    assert.deepEqual(await readdir(join(home, "models", modelId)), []);
  }
});

test("one content is on the disk once, and goes with the last model that has it", async () => {
  const models = new ModelFiles(home);
  await models.install(await request("first"), async () => {});
  await models.install(await request("second"), async () => {});
  // Nobody reads its source: it is there.
  await rm(source);
  const third = { modelId: "third", path: source, sha256, knownSha256: "", progress: () => {} };
  await models.install({ ...third, signal: new AbortController().signal }, async () => {});
  const places = ["first", "second", "third"].map((modelId) => join(home, "models", modelId, sha256));
  const inodes = new Set((await Promise.all(places.map((place) => stat(place)))).map(({ ino }) => ino));
  assert.equal(inodes.size, 1);
  await models.removeUnowned("first", async () => false);
  await models.removeUnowned("third", async () => false);
  assert.ok((await readFile(places[1] ?? "")).equals(content));
});

test("content that is made anew replaces what is there, which may be damaged", async () => {
  const models = new ModelFiles(home);
  await models.install(await request("repaired"), async () => {});
  const place = join(home, "models/repaired", sha256);
  await rm(place);
  await writeFile(place, "damaged");
  await models.install(await request("repaired", { knownSha256: null }), async () => {});
  assert.ok((await readFile(place)).equals(content));
});
