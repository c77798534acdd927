// Blueprints as clients see them: real folders, real records.

import assert from "node:assert/strict";
import { chmod, cp, mkdir, mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readDefinition } from "../bundles/definition.ts";
import { FolderChanges } from "../bundles/folder-changes.ts";
import { BundleProblem } from "../bundles/problem.ts";
import type { JsonObject } from "../engine/json.ts";
import { sqlBlueprintRecords } from "../store/sql/blueprints.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { Catalog } from "./catalog.ts";
import { type BlueprintFilter, BlueprintViews } from "./catalog-views.ts";
import type { PreparedBlueprint } from "./records.ts";

const everything: BlueprintFilter = { category: null, text: null, state: null };

/** A catalog folder, records, and packages that were "added" by copying a folder to where snapshots lie. */
async function place() {
  const root = await mkdtemp(join(tmpdir(), "catalog-views-"));
  const folder = join(root, "catalog");
  const snapshots = join(root, "bundles");
  for (const made of [folder, snapshots]) await mkdir(made);
  const database = openSqlite(":memory:");
  const writes = sqlGatewayRecords(database, (work) => setImmediate(work));
  let nowMs = 1_000_000;
  let packagesRead = 0;
  const changes = new FolderChanges({ home: root, bundleBytesMax: 10_000_000, nowMs: () => nowMs });
  const catalog = new Catalog({ folders: [folder], nowMs: () => nowMs, changes });
  const views = new BlueprintViews({
    catalog,
    records: sqlBlueprintRecords(database),
    packages: {
      definition(fingerprint) {
        packagesRead++;
        return readDefinition(join(snapshots, fingerprint));
      },
    },
  });
  return {
    views,
    packagesRead: () => packagesRead,
    /** Writes a blueprint's folder; the catalog sees it at once. */
    async write(id: string, identity: JsonObject = {}, more: JsonObject = {}) {
      const manifest = {
        manifest_version: "1.0",
        graph_id: id,
        entrypoints: ["in"],
        nodes: [{ node_id: "in", agent_type: "router" }],
        ...more,
      };
      await mkdir(join(folder, id, "config"), { recursive: true });
      await writeFile(join(folder, id, "manifest.json"), JSON.stringify(manifest));
      await writeFile(join(folder, id, "config/default.json"), JSON.stringify({ identity }));
      nowMs += 1_000;
    },
    /** Changes a blueprint's folder; a second later. */
    async edit(id: string, change: (folder: string) => Promise<void>) {
      await change(join(folder, id));
      nowMs += 1_000;
    },
    async remove(id: string) {
      await rm(join(folder, id), { recursive: true });
      nowMs += 1_000;
    },
    /** @returns the fingerprint of a package like the folder as it is now */
    async snapshot(id: string, name = id): Promise<string> {
      await cp(join(folder, id), join(snapshots, name), { recursive: true });
      return name;
    },
    save: (blueprintId: string, more: Partial<PreparedBlueprint>) =>
      writes.write(async (transaction) => {
        await transaction.blueprints.save({
          blueprintId,
          state: "added",
          fingerprint: null,
          sizeBytes: 7,
          operationId: "op_1",
          addedAtMs: 5,
          updatedAtMs: 5,
          error: null,
          ...more,
        });
      }),
    ids: async (filter: Partial<BlueprintFilter> = {}, limit = 100, after: string | null = null) => {
      const found = await views.list({ ...everything, ...filter }, { limit, after });
      return found.map(({ blueprintId }) => blueprintId);
    },
    async [Symbol.asyncDispose]() {
      await database.close();
      await rm(root, { recursive: true });
    },
  };
}

const codes = (findings: readonly { readonly code: string }[] | undefined) =>
  findings?.map(({ code }) => code);

test("what is in the catalog and what is prepared are one list, in the order of their ids", async () => {
  await using at = await place();
  for (const id of ["b", "d", "a"]) await at.write(id);
  await at.write("e", {}, { nodes: [] });
  await at.save("c", { state: "failed", error: { code: "disk_full", detail: "No room.", retryable: true } });
  assert.deepEqual(await at.ids(), ["a", "b", "c", "d", "e"]);
  const views = await at.views.list(everything, { limit: 100, after: null });
  assert.deepEqual(
    views.map(({ state }) => state),
    ["available", "available", "failed", "available", "broken"],
  );
  assert.deepEqual(codes(views[2]?.errors), ["disk_full"]);
  assert.deepEqual(codes(views[4]?.errors), ["empty"]);
  assert.deepEqual(
    [await at.ids({}, 2), await at.ids({}, 2, "b"), await at.ids({}, 2, "e")],
    [["a", "b"], ["c", "d"], []],
  );
});

test("filters look at category, state, and text in id, name, description and tags, whatever its case", async () => {
  await using at = await place();
  await at.write("one", { name: "First", category: "reports", tags: ["CSV"] });
  await at.write("two", { description: "Reads cSv files", category: "reports" });
  await at.write("three", { category: "logs" });
  await at.save("three", { state: "adding" });
  assert.deepEqual(await at.ids({ category: "reports" }), ["one", "two"]);
  assert.deepEqual(await at.ids({ text: "csv" }), ["one", "two"]);
  assert.deepEqual(await at.ids({ text: "FIRST" }), ["one"]);
  assert.deepEqual(await at.ids({ text: "thr" }), ["three"]);
  assert.deepEqual(await at.ids({ state: "adding" }), ["three"]);
  assert.deepEqual(await at.ids({ state: "available", category: "logs" }), []);
});

test("the added package is described, with a warning of how its folder differs from it", async () => {
  await using at = await place();
  await at.write("report", { name: "Before" });
  const fingerprint = await at.snapshot("report");
  await at.save("report", { fingerprint });
  const same = await at.views.get("report");
  assert.deepEqual([same?.state, same?.identity.name, same?.warnings], ["added", "Before", []]);

  await at.write("report", { name: "After" });
  const changed = await at.views.get("report");
  assert.deepEqual([changed?.identity.name, codes(changed?.warnings)], ["Before", ["folder_changed"]]);

  await at.write("report", { name: "After" }, { nodes: [] });
  const broken = await at.views.get("report");
  assert.deepEqual([broken?.state, codes(broken?.warnings)], ["added", ["folder_broken"]]);
  assert.deepEqual(broken?.errors, []);

  await at.remove("report");
  const gone = await at.views.get("report");
  assert.deepEqual(
    [gone?.state, gone?.place, gone?.identity.name, codes(gone?.warnings)],
    ["added", null, "Before", ["folder_gone"]],
  );
  assert.deepEqual(await at.ids(), ["report"]);
});

test("a payload that was edited, added, removed or made executable marks the blueprint; a touched one does not", async () => {
  await using at = await place();
  await at.write("report");
  for (const name of ["work.sh", "same.sh", "gone.sh"]) {
    await at.edit("report", async (folder) => {
      await mkdir(join(folder, "payloads"), { recursive: true });
      await writeFile(join(folder, "payloads", name), "echo one");
    });
  }
  await at.save("report", { fingerprint: await at.snapshot("report") });
  const difference = async () => {
    const { isModified, warnings } = await at.views.get("report");
    return [isModified, warnings.map(({ message }) => /changed \((.*)\)/.exec(message)?.[1]).join()];
  };
  assert.deepEqual(await difference(), [false, ""]);

  const inPayloads = (name: string, change: (file: string) => Promise<void>) =>
    at.edit("report", (folder) => change(join(folder, "payloads", name)));
  await inPayloads("same.sh", (file) => utimes(file, 1, 1));
  await inPayloads("work.sh", async (file) => writeFile(file, await readFile(file)));
  assert.deepEqual(await difference(), [false, ""]);

  // Of the same size, and with the same time: only the content tells.
  await inPayloads("work.sh", async (file) => {
    await writeFile(file, "echo two");
    await utimes(file, 1, 1);
  });
  assert.deepEqual(await difference(), [true, '"payloads/work.sh"']);
  await inPayloads("work.sh", (file) => writeFile(file, "echo one"));
  assert.deepEqual(await difference(), [false, ""]);

  await inPayloads("gone.sh", (file) => rm(file));
  await inPayloads("new.sh", (file) => writeFile(file, "echo one"));
  await inPayloads("same.sh", (file) => chmod(file, 0o755));
  await inPayloads("work.sh", (file) => writeFile(file, "echo three"));
  assert.deepEqual(await difference(), [
    true,
    '"payloads/gone.sh", "payloads/new.sh", "payloads/same.sh" and 1 more',
  ]);
  const [listed] = await at.views.list(everything, { limit: 1, after: null });
  assert.equal(listed?.isModified, true);
});

test("a search reads each added package once, and again when another one was added; a state is no search", async () => {
  await using at = await place();
  await at.write("one", { name: "First" });
  await at.write("two", { name: "Second" });
  for (const id of ["one", "two"]) await at.save(id, { fingerprint: await at.snapshot(id) });
  assert.deepEqual([await at.ids({ state: "failed" }), at.packagesRead()], [[], 0]);
  for (const text of ["third", "third"]) assert.deepEqual(await at.ids({ text }), []);
  assert.equal(at.packagesRead(), 2);
  await at.write("one", { name: "Third" });
  assert.deepEqual(await at.ids({ text: "third" }), []);
  await at.save("one", { fingerprint: await at.snapshot("one", "newer") });
  assert.deepEqual(await at.ids({ text: "third" }), ["one"]);
  await at.save("one", { fingerprint: "/nowhere" });
  assert.deepEqual(await at.ids({ text: "third" }), ["one"]);
  await at.write("one", { name: "Fourth" });
  assert.deepEqual(await at.ids({ text: "third" }), []);
});

test("a package that somebody has removed from the disk does not keep the blueprint from being shown", async () => {
  await using at = await place();
  await at.write("report", { name: "Folder" });
  await at.save("report", { fingerprint: "/nowhere" });
  assert.equal((await at.views.get("report"))?.identity.name, "Folder");
  await at.remove("report");
  assert.equal((await at.views.get("report"))?.identity.name, "report");
  await assert.rejects(readDefinition("/nowhere"), BundleProblem);
});

test("a failed blueprint whose folder is broken too is broken, with both reasons", async () => {
  await using at = await place();
  await at.write("report", {}, { nodes: [] });
  await at.save("report", {
    state: "failed",
    error: { code: "blueprint_broken", detail: "It was broken.", retryable: true },
  });
  const view = await at.views.get("report");
  assert.deepEqual([view?.state, codes(view?.errors)], ["broken", ["empty", "blueprint_broken"]]);
});

test("an id that is neither in the catalog nor prepared is refused, with the one that was probably meant", async () => {
  await using at = await place();
  await at.write("report");
  await assert.rejects(at.views.get("nobody"), { code: "blueprint_not_found" });
  await assert.rejects(at.views.get("reprot"), { message: /Did you mean "report"\?/ });
});
