// ETag (CONTRACTS §2), over real sockets. The test server's resource has revision 7, and 8 after its DELETE.

import assert from "node:assert/strict";
import { test } from "node:test";
import { problemIn, startApp, type TestApp } from "./test-app.ts";

const remove = (app: TestApp, ifMatch: string | null) =>
  fetch(`${app.url}/things/x`, {
    method: "DELETE",
    headers: ifMatch === null ? {} : { "if-match": ifMatch },
  });

test("Missing 428, stale 412 (the current ETag in the response header)", async () => {
  await using app = await startApp();
  await problemIn(await remove(app, null), 428, "precondition_required");
  for (const stale of ['"6"', "7", '"07"', 'W/"7"', '""', "", '"7', '"6", "8"', '"*"', "garbage,,,"]) {
    const answer = await remove(app, stale);
    assert.equal(answer.headers.get("etag"), '"7"', stale);
    await problemIn(answer, 412, "precondition_failed");
  }
});

test("the current ETag (whatever was shown with the revision), a list that has it, and If-Match: * are allowed", async () => {
  for (const current of ['"7"', '"7-x"', '"6", "7"', 'W/"7","7"', '"a,b","7"', "*", " * "]) {
    await using app = await startApp();
    assert.equal((await remove(app, current)).status, 204, current);
    assert.equal((await fetch(`${app.url}/things/x`)).headers.get("etag"), '"8"');
  }
});

test("GET honours If-None-Match with 304: weak comparison, lists, *", async () => {
  await using app = await startApp();
  const get = async (tags: string) =>
    (await fetch(`${app.url}/things/x`, { headers: { "if-none-match": tags } })).status;
  for (const same of ['"7"', 'W/"7"', '"1", "7"', "*"]) assert.equal(await get(same), 304, same);
  for (const other of ['"6"', "7", 'W/"6"', '"77"', ""]) assert.equal(await get(other), 200, other);
});
