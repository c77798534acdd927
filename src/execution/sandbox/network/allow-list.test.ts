import assert from "node:assert/strict";
import { test } from "node:test";
import { anyString, fc } from "../../../../test/support/fast-check.ts";
import { AllowList, allowListProblems } from "./allow-list.ts";
import { canonicalHost, destinationText, parseDestination } from "./hosts.ts";

const allow = (...entries: string[]) => {
  assert.deepEqual(allowListProblems(entries), []);
  return new AllowList(entries);
};
const allows = (list: AllowList, text: string) => {
  const destination = parseDestination(text);
  return destination !== null && list.refusalOfHost(destination) === null;
};

test("a host is allowed with its port, in any case, with a dot at its end, and in its own script", () => {
  const list = allow(
    "API.Example.com:443",
    "bücher.example.:80",
    "[FD00:0::1]:443",
    "10.0.0.5:8080",
    "db:5432",
  );
  for (const text of [
    ...["api.example.com:443", "API.EXAMPLE.COM.:443", "xn--bcher-kva.example:80", "BÜCHER.example:80"],
    ...["[fd00::1]:443", "[fd00:0:0::1]:443", "10.0.0.5:8080", "db:5432"],
  ])
    assert.ok(allows(list, text), text);
  for (const text of [
    ...["api.example.com:80", "api.example.com:4430", "xapi.example.com:443", "api.example.com.evil.com:443"],
    ...["example.com:443", "10.0.0.5:80", "10.0.0.50:8080", "[fd00::2]:443", "db.evil.com:5432"],
  ])
    assert.ok(!allows(list, text), text);
});

test("a star stands for one label", () => {
  const list = allow("*.example.com:443");
  assert.ok(allows(list, "a.example.com:443") && allows(list, "xn--a.example.com:443"));
  for (const text of ["example.com:443", "a.b.example.com:443", "a.example.com:80", "aexample.com:443"])
    assert.ok(!allows(list, text), text);
  assert.deepEqual(parseDestination("*.example.com:443"), null, "a client cannot ask for a star");
});

test("what is not a host with a port is a problem, told by its number", () => {
  const wrong = [
    ...[
      "api.example.com",
      "api.example.com:0",
      "api.example.com:65536",
      "api.example.com:https",
      ":443",
      "*:443",
    ],
    ...[
      "*.com:443",
      "a.*.com:443",
      "*a.example.com:443",
      "**.example.com:443",
      "*.10.0.0.1:443",
      "*.1.2:443",
    ],
    ...["https://api.example.com:443", "api.example.com:443/path", "user@api.example.com:443", "a..b:443"],
    ...[
      "-a.example.com:443",
      "a-.example.com:443",
      "127.1:80",
      "0x7f.1:80",
      "2130706433:80",
      "::1:80",
      "fd00::1:80",
    ],
    ...[
      "[fe80::1%eth0]:80",
      "[127.0.0.1]:80",
      "[::1]",
      "１２７.0.0.1:80",
      "a b.com:80",
      "a\tb.com:80",
      "/run/x.sock",
    ],
    ...[
      "unix:/run/x.sock:80",
      "a%41.com:80",
      `${"a".repeat(64)}.com:80`,
      `${"a.".repeat(130)}com:80`,
      "",
      " a.com:80",
    ],
    "a.com:80 ",
  ];
  const problems = allowListProblems(["ok.example.com:443", ...wrong, 7, null, {}]);
  assert.deepEqual(
    problems.map(({ index }) => index),
    Array.from({ length: wrong.length + 3 }, (_, i) => i + 1),
  );
  assert.match(problems[0]!.message, /"api\.example\.com:443"/);
});

test("a refusal names the line that allows what was refused", () => {
  const list = allow("api.example.com:443");
  const byName = list.refusalOfHost({ host: "other.example.com", port: 443 });
  assert.deepEqual(byName, { reason: "it is not in the sandbox's policy", add: "other.example.com:443" });
  const byAddress = list.refusalOfAddress("fd00::5", 443);
  assert.deepEqual(byAddress, { reason: "fd00::5 is a private address", add: "[fd00::5]:443" });
});

test("an address that is not public is allowed where that very address is listed with the port", () => {
  const list = allow("db.internal:5432", "10.0.0.5:5432", "169.254.169.254:80");
  assert.equal(list.refusalOfAddress("10.0.0.5", 5432), null);
  assert.equal(list.refusalOfAddress("169.254.169.254", 80), null);
  assert.equal(list.refusalOfAddress("8.8.8.8", 1), null);
  for (const [address, port] of [
    ["10.0.0.5", 5433],
    ["10.0.0.6", 5432],
    ["::ffff:10.0.0.5", 5432],
  ] as const)
    assert.notEqual(list.refusalOfAddress(address, port), null, address);
});

const label = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
const name = fc.array(label, { minLength: 2, maxLength: 4 }).map((labels) => labels.join("."));
const port = fc.integer({ min: 1, max: 65_535 });

test("a list allows what it lists, and adding the line of a refusal allows it", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, port), { maxLength: 5 }), name, port, (listed, host, asked) => {
      const entries = listed.map(([name, port]) => `${name}:${port}`);
      const list = new AllowList(entries);
      for (const entry of entries) assert.ok(allows(list, entry));
      const refusal = list.refusalOfHost({ host, port: asked });
      assert.equal(refusal === null, entries.includes(`${host}:${asked}`));
      if (refusal !== null)
        assert.equal(new AllowList([...entries, refusal.add]).refusalOfHost({ host, port: asked }), null);
    }),
  );
});

test("what a client may ask for has one spelling, whatever it sends", () => {
  fc.assert(
    fc.property(fc.oneof(anyString(), fc.domain(), fc.webAuthority(), fc.ipV4Extended()), (text) => {
      const host = canonicalHost(text);
      if (host === null) return;
      assert.match(host, /^[a-z0-9._:-]+$/);
      assert.equal(canonicalHost(host), host);
      const asked = { host, port: 443 };
      assert.deepEqual(parseDestination(destinationText(asked)), asked);
    }),
    { numRuns: 2_000 },
  );
});
