// The relay of streams: what a client is sent does not depend on how the bytes came.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { DONE, part, USAGE_EVENT } from "../../../test/support/llm.ts";
import { StreamRelay } from "./stream-relay.ts";

/** @param cuts where the bytes are cut */
function relayed(text: string, cuts: readonly number[], hidesUsage: boolean) {
  const bytes = Buffer.from(text);
  const relay = new StreamRelay("m", hidesUsage);
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  const passed = places.slice(1).map((end, n) => relay.push(bytes.subarray(places[n], end)));
  return { sent: Buffer.concat([...passed, relay.end()]).toString("utf8"), relay };
}

const events = fc.array(
  fc.constantFrom(part("a"), part("ßü😀"), part("", {}, "stop"), part("b", { usage: null }), ": ping\n\n"),
);

test("however the bytes are cut, what was asked for comes as it was sent, and nothing else is left out", () => {
  fc.assert(
    fc.property(events, fc.array(fc.nat()), (sent, cuts) => {
      const text = `${sent.join("")}${USAGE_EVENT}${DONE}`;
      assert.equal(relayed(text, cuts, false).sent, text);
      const shown = `${sent.join("").replaceAll(',"usage":null', "")}${DONE}`;
      const { sent: hidden, relay } = relayed(text, cuts, true);
      assert.equal(hidden, shown);
      assert.equal(relay.failure, null);
      assert.deepEqual(relay.usage, { input: 5, output: 2, isEstimated: false });
    }),
  );
});

test("an end without its mark is whole once a reason to finish was told, and cut otherwise", () => {
  const whole = relayed(part("a") + part("", {}, "stop"), [], true);
  assert.ok(whole.relay.failure === null && whole.sent.endsWith(DONE));
  assert.equal(relayed(part("a"), [], true).relay.failure?.code, "upstream_cut");
  // The last line lacks its end.
  assert.equal(relayed((part("a") + DONE).trimEnd(), [], true).relay.failure, null);
});

test("what came before a mistake is passed on, and nothing after it", () => {
  const text = `${part("a")}data: nonsense\n\n${part("b")}`;
  fc.assert(
    fc.property(fc.array(fc.nat()), (cuts) => {
      const bytes = Buffer.from(text);
      const relay = new StreamRelay("m", true);
      const places = [0, ...cuts.map((cut) => cut % bytes.length), bytes.length].toSorted((a, b) => a - b);
      let sent = "";
      for (const [n, end] of places.slice(1).entries()) {
        if (relay.failure !== null) break;
        sent += relay.push(bytes.subarray(places[n], end)).toString("utf8");
      }
      assert.equal(sent, part("a"));
      assert.equal(relay.failure?.code, "upstream_invalid_response");
    }),
  );
});
