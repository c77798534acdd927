import assert from "node:assert/strict";
import { test } from "node:test";
import { Devices, isDevice } from "./devices.ts";

test("a device is what is a device file, and nothing else", () => {
  const paths = ["/dev/null", "/dev", "/dev/no-such-device", "/etc/passwd"];
  assert.deepEqual(paths.map(isDevice), [true, false, false, false]);
});

test("devices are told by their paths, and looked at again after some seconds", () => {
  let nowMs = 0;
  const devices = new Devices({ steadyMs: () => nowMs });
  const { told } = devices;
  assert.ok(told.includes("/dev/null") && told.includes("/dev/full"), told.join());
  assert.ok(!told.some((path) => /^\/dev\/(pts|shm|fd)\b/.test(path)), told.join());
  nowMs = 4_999;
  assert.equal(devices.told, told);
  nowMs = 5_000;
  assert.notEqual(devices.told, told);
});
