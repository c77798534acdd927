// The routes of bundles: forms that are not as they should be, keys, and races with jobs.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { zipOf } from "../../../test/support/bundle-files.ts";
import { Gate } from "../../../test/support/core.ts";
import { graph, router } from "../../../test/support/graphs.ts";
import { BUNDLE_BYTES_MAX, startRoutes, type TestRoutes } from "../../../test/support/routes.ts";
import type { JsonObject } from "../../engine/json.ts";

const zip = (graphId = "quick") => zipOf({ "manifest.json": graph(graphId, [router("in")]) });

async function upload(routes: TestRoutes, form: FormData, headers: Record<string, string> = {}) {
  const answer = await fetch(`${routes.app.url}/bundles`, { method: "POST", body: form, headers });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text) as JsonObject };
}

/** A form of parts in order: a text is a field, bytes are a file. */
function formOf(
  parts: readonly (readonly [name: string, value: string | Uint8Array<ArrayBuffer>])[],
): FormData {
  const form = new FormData();
  for (const [name, value] of parts) {
    if (typeof value === "string") form.append(name, value);
    else form.append(name, new Blob([value]), "bundle.zip");
  }
  return form;
}

const listed = async (routes: TestRoutes) => (await routes.ask("GET", "/bundles")).body.items as JsonObject[];

describe("an upload", () => {
  test("under a key: the same again, and 409 for other content", async () => {
    await using routes = await startRoutes();
    const headers = { "idempotency-key": "k" };
    const first = await upload(routes, formOf([["bundle", await zip()]]), headers);
    assert.equal(first.status, 201, first.text);
    assert.equal(first.headers.get("location"), `/api/v1/bundles/${first.body.bundle_id}`);
    const again = await upload(routes, formOf([["bundle", await zip()]]), headers);
    assert.deepEqual([again.text, again.headers.get("idempotency-replayed")], [first.text, "true"]);
    const other = await upload(routes, formOf([["bundle", await zip("other")]]), headers);
    assert.deepEqual([other.status, other.body.code], [409, "idempotency_key_reused"]);
    assert.equal((await listed(routes)).length, 1);
  });

  test("20 times at once is one bundle", async () => {
    await using routes = await startRoutes();
    const bytes = await zip();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => upload(routes, formOf([["bundle", bytes]]))),
    );
    assert.deepEqual([...new Set(answers.map(({ status, text }) => `${status} ${text}`))].length, 1);
    assert.equal((await listed(routes)).length, 1);
  });

  for (const [what, parts] of [
    ["a field nobody knows before the file", [["note", "hi"], "zip"]],
    ["a field nobody knows behind the file", ["zip", ["note", "hi"]]],
    ["a second file", ["zip", ["other", new Uint8Array(10)]]],
    ["the file twice", ["zip", "zip"]],
    ["the file under another name", [["file", new Uint8Array(10)]]],
    ["a text in place of the file", [["bundle", "hi"]]],
    ["nothing", []],
  ] as const) {
    test(`with ${what} is refused, names it, and leaves no bundle`, async () => {
      await using routes = await startRoutes();
      const bytes = await zip();
      const form = formOf(parts.map((part) => (part === "zip" ? ["bundle", bytes] : part)));
      const { status, body, text } = await upload(routes, form);
      assert.deepEqual([status, body.code], [422, "validation_failed"], text);
      assert.ok((body.errors as unknown[]).length > 0);
      assert.deepEqual(await listed(routes), []);
    });
  }

  test("with a file whose part has no name is refused, and leaves no bundle", async () => {
    await using routes = await startRoutes();
    const head = (name: string) =>
      `--b\r\ncontent-disposition: form-data; ${name}filename="a.zip"\r\ncontent-type: application/zip\r\n\r\nPK\r\n`;
    const { status, body, text } = await routes.ask("POST", "/bundles", {
      body: `${head("")}${head('name="bundle"; ')}--b--\r\n`,
      headers: { "content-type": "multipart/form-data; boundary=b" },
    });
    assert.deepEqual([status, body.code], [422, "validation_failed"], text);
    assert.deepEqual(await listed(routes), []);
  });

  test("that is too large is refused, and the connection goes on", async () => {
    await using routes = await startRoutes();
    const large = new Uint8Array(BUNDLE_BYTES_MAX + 1);
    const { status, body } = await upload(routes, formOf([["bundle", large]]));
    assert.deepEqual([status, body.code], [413, "payload_too_large"]);
    assert.deepEqual(await listed(routes), []);
  });
});

describe("deleting a bundle", () => {
  test("while a job is being made of it: either the job is there, or the bundle is gone", async () => {
    await using routes = await startRoutes();
    const { core, ask } = routes;
    const { body } = await upload(routes, formOf([["bundle", await zip()]]));
    const path = `/bundles/${body.bundle_id}`;
    const gate = new Gate();
    core.records.gates.push(gate);
    const created = ask("POST", "/jobs", { body: { bundle_id: body.bundle_id } });
    await gate.reached;
    assert.equal((await ask("DELETE", path)).status, 204);
    gate.open();
    const { status, body: problem } = await created;
    assert.equal(status, 422);
    assert.deepEqual((problem.errors as JsonObject[])[0]?.path, "/bundle_id");
    assert.equal((await ask("DELETE", path)).body.code, "bundle_not_found");
  });

  test("is refused while a job uses it, and done once that is deleted", async () => {
    await using routes = await startRoutes();
    const { ask } = routes;
    const { body } = await upload(routes, formOf([["bundle", await zip()]]));
    const job = await ask("POST", "/jobs", { body: { bundle_id: body.bundle_id } });
    const path = `/bundles/${body.bundle_id}`;
    assert.equal((await ask("DELETE", path)).body.code, "bundle_in_use");
    const headers = { "if-match": "*" };
    assert.equal((await ask("DELETE", `/jobs/${job.body.job_id}`, { headers })).status, 204);
    assert.equal((await ask("DELETE", path)).status, 204);
    assert.deepEqual(await listed(routes), []);
  });
});
