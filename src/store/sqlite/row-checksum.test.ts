// A row's checksum does not depend on how it is computed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { rowChecksum } from "./row-checksum.ts";

test("the checksum of long texts is that of all values joined", () => {
  const long = "text é \ud83d".repeat(10_000);
  for (const values of [
    ["a", null, 7],
    [long],
    [long, null, 7, "", long],
    [null, long],
    [-1.5, long, null],
  ]) {
    assert.equal(rowChecksum(values), crc32(values.join("\0")));
  }
});
