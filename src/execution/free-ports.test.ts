import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { FreePorts, isPortFree } from "./free-ports.ts";

test("a port is free while nobody listens there, on whichever address", async () => {
  for (const host of ["127.0.0.1", "0.0.0.0"]) {
    const server = createServer();
    await once(server.listen(0, host), "listening");
    const { port } = server.address() as AddressInfo;
    assert.equal(isPortFree(port), false, host);
    server.close();
    await once(server, "close");
    assert.equal(isPortFree(port), true, host);
    assert.equal(isPortFree(port), true, "the look itself takes nothing");
  }
});

test("ports are looked for from anywhere in the range, and beyond its end from its beginning", () => {
  const ports = new FreePorts(0.999999, () => true);
  assert.deepEqual([ports.choose(() => false), ports.choose(() => false)], [31_999, 20_000]);
});

test("where other programs have one port after the other, one is given although somebody has it", () => {
  let looks = 0;
  const ports = new FreePorts(0, () => {
    looks++;
    return false;
  });
  assert.equal(
    ports.choose((port) => port < 20_010),
    20_266,
  );
  assert.equal(looks, 256);
});
