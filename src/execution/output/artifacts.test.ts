// The files of an attempt as artifacts.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { collectArtifacts } from "./artifacts.ts";

test("ids follow the order of the names, whichever file is kept first", async (t) => {
  const home = mkdtempSync(join(tmpdir(), "troupe-artifacts-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const folder = join(home, "output");
  mkdirSync(folder);
  for (const name of ["a.txt", "b.txt"]) writeFileSync(join(folder, name), name);
  const second = Promise.withResolvers<void>();
  let ids = 0;
  const artifacts = await collectArtifacts({
    home,
    folder,
    agentId: "w",
    blobs: {
      async put(path) {
        if (basename(path) === "a.txt") await second.promise;
        else second.resolve();
        return { sha256: basename(path), size: 5 };
      },
    },
    newId: () => String(++ids),
    nowMs: 0,
    outputs: [],
    warn: assert.fail,
  });
  assert.deepEqual(
    artifacts.map(({ artifactId, name, sha256 }) => [artifactId, name, sha256]),
    [
      ["art_1", "a.txt", "a.txt"],
      ["art_2", "b.txt", "b.txt"],
    ],
  );
});
