// Which file of a run is the one that a user came for.

import assert from "node:assert/strict";
import { type ContractTest, contractOnEach, type OpenDatabase } from "../../../test/support/databases.ts";
import { changes } from "../../../test/support/journal-records.ts";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import { sqlJobRecords } from "./jobs.ts";

type File = readonly [artifactId: string, name: string, kind: "output" | "artifact", isPrimary: 0 | 1];

contractOnEach("the records of a run's files", (open) => open, contract);

function contract(test: ContractTest<OpenDatabase>): void {
  test("it is the newest final_artifact.*, else the first primary output, else the only output", async ({
    database,
    journal,
  }) => {
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
    const { finalArtifact } = sqlJobRecords(database);
    for (const [i, [files, expected]] of table.entries()) {
      const first = changes({ jobId: `a-${i}`, artifacts: files.map(artifact) });
      await journal.commit([first]);
      const found = await finalArtifact(first.insert!.runId);
      assert.equal(found?.artifactId ?? null, expected, files.map(([, name]) => name).join(", "));
    }
  });
}

function artifact([artifactId, name, kind, isPrimary]: File): ArtifactRecord {
  return {
    artifactId,
    agentId: null,
    name,
    kind,
    title: null,
    primary: isPrimary === 1,
    size: 1,
    sha256: "",
    contentType: "text/plain",
    createdAtMs: 0,
  };
}
