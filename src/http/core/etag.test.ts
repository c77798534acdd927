// ETag (CONTRACTS §2), over real sockets. The test server's resource has revision 7, and 8 after its DELETE.

import assert from "node:assert/strict";
import { test } from "node:test";
import { problemIn, startApp, type TestApp } from "../../../test/support/api.ts";
import { etagOf } from "./etag.ts";

const remove = (app: TestApp, ifMatch: string | null) =>
  fetch(`${app.url}/things/x`, {
    method: "DELETE",
    headers: ifMatch === null ? {} : { "if-match": ifMatch },
  });

const tag = async (app: TestApp) => (await fetch(`${app.url}/things/x`)).headers.get("etag") ?? "";

test("Missing 428, stale 412 (the current ETag in the response header)", async () => {
  await using app = await startApp();
  await problemIn(await remove(app, null), 428, "precondition_required");
  const current = await tag(app);
  const bare = current.slice(1, -1);
  // The first ones never existed: a revision alone, one with something made up, that of another resource.
  for (const stale of [
    '"7"',
    '"7-x"',
    `"7-${"0".repeat(24)}"`,
    etagOf({ id: "y", revision: 7 }, "shown"),
    etagOf({ id: "x", revision: 6 }, "shown"),
    bare,
    `"0${bare}"`,
    `"${bare}0"`,
    `W/${current}`,
    '""',
    "",
    current.slice(0, -1),
    '"6", "8"',
    '"*"',
    "garbage,,,",
  ]) {
    const answer = await remove(app, stale);
    assert.equal(answer.headers.get("etag"), current, stale);
    await problemIn(answer, 412, "precondition_failed");
  }
});

test("the current ETag (whatever was shown with the revision), a list that has it, and If-Match: * are allowed", async () => {
  const now = etagOf({ id: "x", revision: 7 }, "shown");
  const before = etagOf({ id: "x", revision: 7 }, "shown when the runs stood elsewhere");
  for (const current of [now, before, `"6", ${now}`, `W/${now},${now}`, `"a,b",${now}`, "*", " * "]) {
    await using app = await startApp();
    assert.equal((await remove(app, current)).status, 204, current);
    assert.equal(await tag(app), etagOf({ id: "x", revision: 8 }, "shown"));
  }
});

test("GET honours If-None-Match with 304: weak comparison, lists, *", async () => {
  await using app = await startApp();
  const get = async (tags: string) =>
    (await fetch(`${app.url}/things/x`, { headers: { "if-none-match": tags } })).status;
  const now = await tag(app);
  for (const same of [now, `W/${now}`, `"1", ${now}`, "*"]) assert.equal(await get(same), 304, same);
  for (const other of ['"6"', "7", 'W/"6"', '"77"', ""]) assert.equal(await get(other), 200, other);
});
