// The blueprint document-digest, launched through the gateway with a folder of the user's.

import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  errorsOf,
  fingerprintOf,
  finished,
  gatedCatalog,
  launch,
  launched,
  startCatalog,
  startCatalogHere,
  type TestFolder,
  userFolder,
} from "../support/catalog-blueprints.ts";
import { assertProblem, call, ended, happens, pathsOf } from "../support/gateway-api.ts";
import { sized } from "../support/long.ts";
import type { Program } from "../support/program.ts";

const ID = "document-digest";
/** Ends a test that would hang; none asserts on time. */
const limit = { timeout: 200_000 };
/** Two for each of the readers: when the first one is read, others are begun and others wait. */
const DOCUMENTS = 8;

let program: Program;
before(async () => {
  program = await startCatalogHere();
});
after(() => program.stop());

const documents = {
  "minutes/march.md":
    "# Minutes of March\n\nThe committee met on Monday. The budget for the new bridge was approved.\n",
  "letter.txt":
    "Dear committee,\n\nThe bridge needs new paint. The old paint has come off in the rain of March.\n",
  "site.html":
    "<title>Bridges</title><script>alert(1)</script><h1>All our <b>bridges</b></h1><p>There are four bridges &amp; a ferry.",
  "latin.txt": Buffer.from("Die Brücke wurde geprüft. Sie hält noch viele Jahre.", "latin1"),
  "broken.docx": "this is no Word document",
  "photo.jpg": Buffer.from([0xff, 0xd8, 0xff]),
};
const folderIs = (folder: TestFolder, more: JsonObject = {}): JsonObject => ({
  documents: { folder: folder.path },
  ...more,
});

describe("the blueprint document-digest", { concurrency: 2 }, () => {
  it("digests a folder of the user's and leaves it untouched", limit, async () => {
    await using folder = await userFolder(documents);
    const untouched = await fingerprintOf(folder.path);
    const runId = await launched(program, ID, folderIs(folder, { digest: { title: "Bridges & co." } }));
    const { result, outputs } = await finished(program, runId);
    assert.equal(result.documents, 4);
    assert.equal(result.not_read, 1);
    assert.deepEqual([...outputs.keys()].sort(), ["report.html", "report.md"]);
    const html = outputs.get("report.html") ?? "";
    for (const title of ["Minutes of March", "letter", "All our bridges", "latin"]) {
      assert.ok(html.includes(`<h2>${title}</h2>`), title);
    }
    assert.match(html, /<h1>Bridges &amp; co\.<\/h1>/);
    assert.match(html, /four bridges &amp; a ferry/);
    assert.match(html, /Die Brücke wurde geprüft/);
    assert.match(html, /broken\.docx<\/b> is no Word document/);
    assert.doesNotMatch(html, /alert\(1\)|photo\.jpg|troupe user/);
    assert.equal(await fingerprintOf(folder.path), untouched);
  });

  it("digests the documents that it ships with when no folder is given, or a blank one", limit, async () => {
    const blank = { documents: { folder: "  " } };
    // Without any, the package that is installed digests them too (package.test.ts).
    const runs = sized([blank], [{}, blank]).map((overrides) => launched(program, ID, overrides));
    for (const run of runs) {
      const { result, outputs } = await finished(program, await run);
      assert.equal(result.documents, 10);
      assert.match(outputs.get("report.html") ?? "", /<h1>A small handbook of durable work<\/h1>/);
    }
  });

  it("names everything that is wrong with a launch at once, and starts nothing", limit, async () => {
    const config = {
      documents: { folder: "/nowhere/at all" },
      digest: { words_per_minute: 1, key_terms: "many", titel: "?" },
    };
    const errors = new Map(await errorsOf(program, ID, config));
    assert.match(errors.get("/config/documents/folder") ?? "", /does not exist/);
    assert.match(errors.get("/config/digest/words_per_minute") ?? "", /Nobody reads at this pace/);
    assert.ok(errors.has("/config/digest/key_terms"));
    assert.ok([...errors.keys()].some((path) => path.startsWith("/config/digest")));

    const refused = await launch(program, ID, config);
    assertProblem(refused, 422, "validation_failed");
    assert.ok(pathsOf(refused).includes("/config_overrides/documents/folder"));
  });

  it("refuses a folder without documents, and one with a link that leads out of it", limit, async () => {
    await using empty = await userFolder({ "photo.jpg": "no document" });
    const [[path, message] = ["", ""]] = await errorsOf(program, ID, folderIs(empty));
    assert.equal(path, "/config/documents/folder");
    assert.match(message, /without any file.*\.md/);

    await using hollow = await userFolder({ "a.md": "" });
    assert.match((await errorsOf(program, ID, folderIs(hollow)))[0]?.[1] ?? "", /all empty/);

    await using linked = await userFolder({ "a.md": "Some text." });
    await symlink(join(hollow.path, "a.md"), join(linked.path, "b.md"));
    const refused = await launch(program, ID, folderIs(linked));
    assertProblem(refused, 422, "validation_failed");
    assert.match(refused.text, /b\.md/);
  });

  it("says how many files of the folder are no documents", limit, async () => {
    await using folder = await userFolder(documents);
    const { valid, warnings } = await call(program, "POST", `/blueprints/${ID}/validate`, {
      config: folderIs(folder),
    });
    assert.equal(valid, true);
    assert.match(JSON.stringify(warnings), /1 skipped/);
  });

  it("gives the same report, byte for byte, when the program is killed in the middle", limit, async () => {
    await using home = await userFolder();
    await using folder = await userFolder();
    for (let i = 0; i < DOCUMENTS; i++) {
      await folder.write(
        `${i}.md`,
        `# Number ${i}\n\n${`The topic of number ${i} is bridges and rain. `.repeat(200)}`,
      );
    }
    await using catalog = await gatedCatalog(ID, "digest/report.py");
    const env = { SVC_BLUEPRINT_CATALOG: catalog.folder };
    await using first = await startCatalog({ home: home.path, env });
    const runId = await launched(first, ID, folderIs(folder));
    await happens(first, runId, "metric");
    await first.kill();

    await catalog.open();
    await using second = await startCatalogHere({ home: home.path, env });
    const after = await finished(second, runId);
    assert.equal((await ended(second, runId)).of("job_recovered").length, 1);
    const undisturbed = await finished(second, await launched(second, ID, folderIs(folder)));
    assert.equal(after.result.documents, DOCUMENTS);
    assert.deepEqual(after.outputs, undisturbed.outputs);
  });
});
