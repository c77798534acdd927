// Who has set each value of a run's configuration.

import assert from "node:assert/strict";
import { test } from "node:test";

const { layersOf } = await import(new URL("./configuration.js", import.meta.url).href);

test("a value is the run's where the run changes it, the blueprint's where it is as there, and else the job's", () => {
  const configuration = { $schema: "x", digest: { title: "Mine", terms: [1, 2], size: 3 }, off: null };
  const overrides = { digest: { title: "Mine" } };
  const defaults = { digest: { title: "Mine", terms: [1, 2], size: 2 }, off: null };
  assert.deepEqual(layersOf(configuration, overrides, defaults), [
    { path: "digest.title", value: "Mine", setBy: "This run" },
    { path: "digest.terms", value: [1, 2], setBy: "Its blueprint" },
    { path: "digest.size", value: 3, setBy: "Its job" },
    { path: "off", value: null, setBy: "Its blueprint" },
  ]);
  assert.deepEqual(layersOf({ a: 1 }, null, undefined), [{ path: "a", value: 1, setBy: "Its job" }]);
  assert.deepEqual(layersOf({}, null, undefined), []);
});
