// The rate limit: the bucket with a clock that the test moves, and the answer over a real socket.

import assert from "node:assert/strict";
import { test } from "node:test";
import { problemIn, startApp, TOKEN } from "../../../test/support/api.ts";
import { callerOf, RateLimit } from "./rate-limit.ts";

test("a caller may use a minute's worth at once, and then as much as comes back with time", () => {
  let nowMs = 1_000_000;
  const rate = new RateLimit({ perMinute: 3, nowMs: () => nowMs });
  assert.deepEqual(
    [1, 2, 3, 4].map(() => rate.take("a")),
    [0, 0, 0, 20],
  );
  nowMs += 19_000;
  assert.equal(rate.take("a"), 1);
  nowMs += 1_000;
  assert.equal(rate.take("a"), 0);
  assert.equal(rate.take("a"), 20);
  nowMs += 3_600_000;
  assert.deepEqual(
    [1, 2, 3, 4].map(() => rate.take("a")),
    [0, 0, 0, 20],
    "no more than a minute's worth is saved up",
  );
});

test("callers do not share, and a clock that steps back gives nothing away", () => {
  let nowMs = 1_000_000;
  const rate = new RateLimit({ perMinute: 1, nowMs: () => nowMs });
  assert.equal(rate.take("a"), 0);
  assert.equal(rate.take("b"), 0);
  nowMs -= 500_000;
  assert.equal(rate.take("a"), 60);
});

test("among many callers, those that asked last are remembered", () => {
  const rate = new RateLimit({ perMinute: 1, nowMs: () => 0 });
  assert.equal(rate.take("first"), 0);
  for (let i = 0; i < 9_999; i++) rate.take(`c${i}`);
  assert.equal(rate.take("first"), 60);
  for (let i = 0; i < 9_999; i++) rate.take(`d${i}`);
  assert.equal(rate.take("first"), 60);
  for (let i = 0; i < 10_000; i++) rate.take(`e${i}`);
  assert.equal(rate.take("first"), 0);
});

test("an IPv6 caller is its network, an IPv4 one its address", () => {
  const cases = [
    ["10.0.0.1", "10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8:1:2::9", "2001:db8:1:2"],
    ["2001:db8::9", "2001:db8:0:0"],
    [undefined, "unknown"],
  ] as const;
  for (const [address, caller] of cases) assert.equal(callerOf(address), caller);
});

test("past SVC_RATE_LIMIT the answer is 429 rate_limited with Retry-After; health is not counted", async () => {
  await using app = await startApp({ requestsPerMinuteMax: 2 });
  for (let i = 0; i < 5; i++) assert.equal((await fetch(`${app.url}/health`)).status, 200);
  for (let i = 0; i < 2; i++) assert.equal((await fetch(`${app.url}/whoami`)).status, 200);
  const answer = await fetch(`${app.url}/whoami`);
  assert.equal(answer.headers.get("retry-after"), "30");
  await problemIn(answer, 429, "rate_limited");
});

test("guessing tokens is limited by address, and does not use up what the token's holder may ask", async () => {
  await using app = await startApp({ apiTokens: [TOKEN], requestsPerMinuteMax: 2 });
  const ask = (token: string) =>
    fetch(`${app.url}/whoami`, { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual(
    [await ask("a"), await ask("b"), await ask("c")].map(({ status }) => status),
    [401, 401, 429],
  );
  assert.deepEqual(
    [await ask(TOKEN), await ask(TOKEN), await ask(TOKEN)].map(({ status }) => status),
    [200, 200, 429],
  );
});
