import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../../test/support/fast-check.ts";
import { canonicalAddress, whyNotPublic } from "./addresses.ts";

const refused: Readonly<Record<string, readonly string[]>> = {
  "a metadata address": ["169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16"],
  "an unspecified address": ["0.0.0.0", "0.1.2.3", "::"],
  "a loopback address": ["127.0.0.1", "127.255.255.255", "::1"],
  "a link-local address": ["169.254.0.1", "169.254.170.2", "fe80::1", "febf::1"],
  "a private address": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1"],
  "an address of a carrier's network": ["100.64.0.1", "100.127.255.255", "100.100.100.200"],
  "a multicast address": ["224.0.0.1", "239.255.255.255", "ff02::1"],
  "an IPv6 address that stands for an IPv4 address": [
    ...["::ffff:127.0.0.1", "::ffff:8.8.8.8", "::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::a00:1"],
    ...["2002:7f00:1::", "2001:0:1::1"],
  ],
  "a reserved address": [
    ...["192.0.0.192", "192.0.2.1", "198.18.0.1", "203.0.113.1", "240.0.0.1", "255.255.255.255"],
    ...["2001:db8::1", "2001:10::1", "3fff::1", "100::1", "4000::1", "8000::1", "fec0::1", "1fff::1"],
  ],
};

test("addresses that are not public are told by what they are", () => {
  for (const [what, addresses] of Object.entries(refused)) {
    for (const address of addresses) assert.equal(whyNotPublic(canonicalAddress(address)!), what, address);
  }
});

test("public addresses are public, up to the borders of what is not", () => {
  const open = [
    ...["1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"],
    ...["128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255"],
    ...["192.169.0.0", "223.255.255.255", "8.8.8.8", "168.63.129.15", "198.20.0.0"],
    ...["2000::1", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700::1111", "3ffe::1"],
  ];
  for (const address of open) assert.equal(whyNotPublic(canonicalAddress(address)!), null, address);
});

test("an address that stands for an IPv4 address is not public, whichever it is", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      for (const mapped of [`::ffff:${address}`, `64:ff9b::${address}`, `::${address}`])
        assert.notEqual(whyNotPublic(canonicalAddress(mapped)!), null);
    }),
  );
});

test("each spelling of an IPv6 address has one canonical form, which is its own", () => {
  fc.assert(
    fc.property(fc.ipV6(), fc.boolean(), (address, upper) => {
      const canonical = canonicalAddress(upper ? address.toUpperCase() : address);
      if (canonical === null) return assert.fail(address);
      assert.equal(canonicalAddress(canonical), canonical);
      assert.equal(canonical, canonicalAddress(address));
    }),
  );
});

test("spellings that only some programs take for an address are none", () => {
  const odd = [
    ...["127.1", "127.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.01"],
    ...[
      "127.0.0.1.",
      " 127.0.0.1",
      "1.2.3.256",
      "1.2.3.4.5",
      "１２７.0.0.1",
      "::1%lo",
      "fe80::1%eth0",
      "[::1]",
    ],
    ...["::1 ", "1::2::3", ":::", "", "0"],
  ];
  for (const text of odd) assert.equal(canonicalAddress(text), null, text);
});
