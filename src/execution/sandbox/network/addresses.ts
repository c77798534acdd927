// Which addresses a sandbox reaches only if its policy lists them: all that are not for everybody on the internet.

import { BlockList, isIPv4, isIPv6, SocketAddress } from "node:net";

/**
 * Networks by what is said of their addresses, the first that holds an address. Of IPv6, what is allocated to the public
 * internet is 2000::/3, so all else is listed as its complement.
 */
const NETWORKS: readonly (readonly [what: string, networks: readonly string[]])[] = [
  // The last one is Azure's, whose services are at a public address.
  ["a metadata address", ["169.254.169.254/32", "fd00:ec2::254/128", "fd20:ce::254/128", "168.63.129.16/32"]],
  ["an unspecified address", ["0.0.0.0/8", "::/128"]],
  ["a loopback address", ["127.0.0.0/8", "::1/128"]],
  ["a link-local address", ["169.254.0.0/16", "fe80::/10"]],
  ["a private address", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]],
  ["an address of a carrier's network", ["100.64.0.0/10"]],
  ["a multicast address", ["224.0.0.0/4", "ff00::/8"]],
  [
    "an IPv6 address that stands for an IPv4 address",
    ["::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16"],
  ],
  [
    "a reserved address",
    [
      ...["192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"],
      ...["203.0.113.0/24", "240.0.0.0/4"],
      ...["2001::/23", "2001:db8::/32", "3fff::/20", "::/3", "4000::/2", "8000::/1"],
    ],
  ],
];

const lists = NETWORKS.map(([what, networks]) => {
  const v4 = new BlockList();
  const v6 = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    if (isIPv4(address)) v4.addSubnet(address, Number(prefix), "ipv4");
    else v6.addSubnet(address, Number(prefix), "ipv6");
  }
  return { what, v4, v6 };
});

/** The one spelling of an address; null for what is none, among it all spellings that only some programs take. */
export function canonicalAddress(text: string): string | null {
  if (isIPv4(text)) return text;
  // A zone (%eth0) is the machine's own matter.
  if (!isIPv6(text) || text.includes("%")) return null;
  return new SocketAddress({ address: text, family: "ipv6" }).address;
}

/** What keeps a canonical address from being public, such as "a private address"; null if nothing does. */
export function whyNotPublic(address: string): string | null {
  const isV4 = isIPv4(address);
  const found = lists.find(({ v4, v6 }) => (isV4 ? v4.check(address, "ipv4") : v6.check(address, "ipv6")));
  return found?.what ?? null;
}
