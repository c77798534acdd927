import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openNodeIdentity } from "./node-identity.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-identity-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let homes = 0;
const newHome = () => mkdtempSync(join(folder, `home${++homes}-`));
const withId = (id: string) => () => id;

test("a home gets an id once, and is in its place from then on", async () => {
  const home = newHome();
  const first = await openNodeIdentity(home, withId("a"));
  assert.deepEqual([first.nodeId, first.isInPlace], ["node_a", true]);
  const again = await openNodeIdentity(home, withId("b"));
  assert.deepEqual([again.nodeId, again.isInPlace], ["node_a", true]);
  assert.equal(statSync(join(home, "node.json")).mode & 0o777, 0o600);
});

test("a copy has the id of its original, and is not in its place until that is settled", async () => {
  const home = newHome();
  await openNodeIdentity(home, withId("a"));
  const copy = join(folder, "copy");
  cpSync(home, copy, { recursive: true });
  const moved = await openNodeIdentity(copy, withId("b"));
  assert.deepEqual([moved.nodeId, moved.isInPlace], ["node_a", false]);
  assert.equal((await openNodeIdentity(copy, withId("b"))).isInPlace, false);
  await moved.settle();
  assert.equal((await openNodeIdentity(copy, withId("b"))).isInPlace, true);
});

test("a home of another boot, or on another machine, is not in its place", async () => {
  const home = newHome();
  await openNodeIdentity(home, withId("a"));
  const file = join(home, "node.json");
  const { node_id, place } = JSON.parse(readFileSync(file, "utf8")) as { node_id: string; place: string };
  writeFileSync(file, JSON.stringify({ node_id, place: `0${place}` }));
  assert.equal((await openNodeIdentity(home, withId("b"))).isInPlace, false);
});

test("a home that took the place of another one, by its path, is not in its place", async () => {
  const home = newHome();
  await openNodeIdentity(home, withId("a"));
  renameSync(home, `${home}-moved`);
  cpSync(`${home}-moved`, home, { recursive: true });
  assert.equal((await openNodeIdentity(home, withId("b"))).isInPlace, false);
});

for (const text of ["", "{}", "null", "[", '{"node_id":"node_a/b","place":"p"}', '{"node_id":"node_a"}']) {
  test(`a damaged node.json is refused, and kept: ${text}`, async () => {
    const home = newHome();
    const file = join(home, "node.json");
    writeFileSync(file, text);
    await assert.rejects(openNodeIdentity(home, withId("b")), {
      name: "StoreUnusable",
      message: /node\.json is damaged\. Remove it/,
    });
    assert.equal(readFileSync(file, "utf8"), text);
  });
}
