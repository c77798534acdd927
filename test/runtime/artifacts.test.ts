// GET /runs/:run_id/artifacts and the bytes behind it. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { answer, executor, graph } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { type Run, run } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { type Artifact, artifactsOf, bytesOf, request } from "../support/runtime-api.ts";

let program: Program;
before(async () => {
  program = await startRuntimeHere();
});
after(() => program.stop());

const runId = (of: Run) => String((of.detail.job as JsonObject).run_id);
const writing = async (script: string, more: JsonObject = {}) => {
  const job = await run(
    program,
    graph("writes", [executor("w", `cd "$SVC_OUTPUT_DIR"; ${script}`)], [], more),
  );
  assert.equal(job.status, "completed");
  return { job, id: runId(job), artifacts: await artifactsOf(program, runId(job)) };
};
const named = (artifacts: readonly Artifact[], name: string) => {
  const found = artifacts.find((artifact) => artifact.name === name);
  assert.ok(found, `no ${name} among ${artifacts.map((artifact) => artifact.name).join(", ")}`);
  return found;
};

test('"each entry has a stable id, size, SHA-256 hash, content type and URL", and they are those of the bytes served', async () => {
  const { artifacts, id } = await writing(
    `printf 'a,b\\n1,2\\n' > table.csv; : > empty.txt; head -c 300000 /dev/urandom > noise.bin; mkdir -p deep/er; echo x > deep/er/x.json`,
  );
  assert.deepEqual(artifacts.map((artifact) => artifact.name).sort(), [
    "deep/er/x.json",
    "empty.txt",
    "noise.bin",
    "table.csv",
  ]);
  assert.equal(new Set(artifacts.map((artifact) => artifact.artifact_id)).size, 4);
  for (const artifact of artifacts) {
    const bytes = await bytesOf(program, artifact.url);
    assert.equal(bytes.length, artifact.size, artifact.name);
    assert.equal(createHash("sha256").update(bytes).digest("hex"), artifact.sha256, artifact.name);
  }
  assert.equal(named(artifacts, "empty.txt").size, 0);
  assert.equal(named(artifacts, "noise.bin").size, 300_000);
  assert.match(named(artifacts, "table.csv").content_type, /^text\/csv/);
  assert.deepEqual(await artifactsOf(program, id), artifacts);
});

test('"url serves Content-Length, ETag = sha256, Content-Disposition, and nosniff"', async () => {
  const { artifacts } = await writing("echo '<script>alert(1)</script>' > page.html");
  const [artifact] = artifacts;
  assert.ok(artifact);
  const { headers } = await fetch(new URL(artifact.url, program.url));
  assert.equal(headers.get("content-length"), String(artifact.size));
  assert.equal(headers.get("etag"), `"${artifact.sha256}"`);
  assert.equal(headers.get("content-type"), artifact.content_type);
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.match(headers.get("content-disposition") ?? "", /^attachment; filename="page\.html"$/);
});

test("a file with blanks, quotes, newlines and emoji in its name can be listed and fetched", async () => {
  const { artifacts } = await writing(
    `echo 1 > 'two words "and" 50%.txt'; echo 2 > '🎭é.txt'; printf 3 > "$(printf 'a\\nb')"`,
  );
  assert.deepEqual(
    artifacts.map(({ name }) => name).sort(),
    ["a\nb", 'two words "and" 50%.txt', "🎭é.txt"].sort(),
  );
  for (const artifact of artifacts)
    assert.equal((await bytesOf(program, artifact.url)).length, artifact.size);
});

test('"one named in manifest outputs, or final_artifact.*, is an output", with title and primary', async () => {
  const outputs = [{ path: "report.md", title: "The report", primary: true }, "rows.csv"];
  const { artifacts } = await writing(
    "for f in report.md rows.csv scrap.txt final_artifact.json; do echo $f > $f; done",
    {
      outputs,
    },
  );
  const kinds = Object.fromEntries(artifacts.map(({ name, kind }) => [name, kind]));
  assert.deepEqual(kinds, {
    "report.md": "output",
    "rows.csv": "output",
    "final_artifact.json": "output",
    "scrap.txt": "artifact",
  });
  const report = named(artifacts, "report.md");
  assert.equal(report.title, "The report");
  assert.equal(report.primary, true);
  assert.equal(named(artifacts, "rows.csv").primary, false);
});

test('"outputs" of a worker\'s answer name its files as outputs', async () => {
  const said = answer({ outputs: [{ path: "made.txt", title: "Made", primary: true }] });
  const { artifacts } = await writing(`echo made > made.txt; ${said}`);
  const made = named(artifacts, "made.txt");
  assert.equal(made.kind, "output");
  assert.equal(made.title, "Made");
  assert.equal(made.primary, true);
});

test("every artifact is announced in the history, with its size and hash", async () => {
  const { artifacts, job } = await writing("echo one > one.txt; echo two > two.txt");
  const announced = job.of("artifact_written", "w").map(({ payload }) => payload);
  assert.deepEqual(
    announced.toSorted((a, b) => (String(a.name) < String(b.name) ? -1 : 1)),
    artifacts
      .map(({ artifact_id, name, kind, size, sha256 }) => ({ artifact_id, name, kind, size, sha256 }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  );
});

test("files of a failed attempt are kept too", async () => {
  const script = `echo evidence > "$SVC_OUTPUT_DIR/evidence.txt"; exit 4`;
  const failed = await run(program, graph("fails", [executor("w", script)]));
  assert.equal(failed.status, "failed");
  assert.deepEqual(
    (await artifactsOf(program, runId(failed))).map(({ name }) => name),
    ["evidence.txt"],
  );
});

test("a link that leads out of the output folder is not followed", async () => {
  const { artifacts } = await writing("ln -s /etc/passwd stolen; ln -s /etc all; echo ok > own.txt");
  assert.deepEqual(
    artifacts.map(({ name }) => name),
    ["own.txt"],
  );
});

test("one run's artifacts are not found under another run", async () => {
  const { artifacts } = await writing("echo secret > secret.txt");
  const other = await writing("true");
  const [artifact] = artifacts;
  assert.ok(artifact);
  assert.deepEqual(other.artifacts, []);
  const { status, body } = await request(
    program,
    "GET",
    `/runs/${other.id}/artifacts/${artifact.artifact_id}`,
  );
  assert.equal(status, 404);
  assert.deepEqual(Object.keys(body), ["error"]);
});

test("an artifact id cannot leave the store", async () => {
  const { id } = await writing("echo x > x.txt");
  for (const bad of ["..", "../../../troupe.db", "%2e%2e%2ftroupe.db", "x/../../troupe.db", "\0"]) {
    const { status } = await request(program, "GET", `/runs/${id}/artifacts/${encodeURIComponent(bad)}`);
    assert.equal(status, 404, bad);
  }
});
