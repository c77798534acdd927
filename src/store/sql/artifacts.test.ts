// Which file of a run is the one that a user came for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSqlite } from "../sqlite/database.ts";
import { sqlJobRecords } from "./jobs.ts";

type File = readonly [artifactId: string, name: string, kind: "output" | "artifact", isPrimary: 0 | 1];

async function finalOf(files: readonly File[]): Promise<string | null> {
  const database = openSqlite(":memory:");
  const columns = database.connection.prepare("PRAGMA table_info(jobs)").all();
  const job = columns.map(({ name, type }) => (type === "INTEGER" ? 0 : `${name} of run_1`));
  job[0] = "a-1";
  database.connection.prepare(`INSERT INTO jobs VALUES (${job.map(() => "?").join(", ")})`).run(...job);
  const insert = database.connection.prepare(
    `INSERT INTO artifacts (run_id, artifact_id, job_id, name, kind, is_primary, size, sha256, content_type, created_at)
     VALUES (?, ?, 'a-1', ?, ?, ?, 1, '', 'text/plain', 0)`,
  );
  for (const [artifactId, ...rest] of files) insert.run("run_1", artifactId, ...rest);
  insert.run("run_2", "art_9", "final_artifact.md", "output", 1);
  const found = await sqlJobRecords(database).finalArtifact("run_1");
  await database.close();
  return found?.artifactId ?? null;
}

test("it is the newest final_artifact.*, else the first primary output, else the only output", async () => {
  const plain: File = ["art_1", "notes.txt", "artifact", 0];
  const only: File = ["art_2", "a.html", "output", 0];
  const primary: File = ["art_4", "b.html", "output", 1];
  const laterPrimary: File = ["art_5", "c.html", "output", 1];
  const final: File = ["art_3", "final_artifact.json", "output", 0];
  const laterFinal: File = ["art_6", "deep/er/final_artifact.md", "output", 0];
  const table: readonly (readonly [readonly File[], string | null])[] = [
    [[], null],
    [[plain], null],
    [[plain, only], "art_2"],
    [[only, ["art_7", "d.html", "output", 0]], null],
    [[only, primary, laterPrimary], "art_4"],
    [[only, final, primary], "art_3"],
    [[final, laterFinal, primary], "art_6"],
    [[["art_8", "my_final_artifact.md", "output", 0], primary], "art_4"],
    [[["art_8", "FINAL_ARTIFACT.md", "output", 0], primary], "art_4"],
  ];
  for (const [files, expected] of table) {
    assert.equal(await finalOf(files), expected, files.map(([, name]) => name).join(", "));
  }
});
