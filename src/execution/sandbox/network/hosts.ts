// Host names, addresses and ports as clients and policies spell them, in one form each: what is judged is what is used.

import { isIPv4, isIPv6 } from "node:net";
import { domainToASCII } from "node:url";
import { canonicalAddress } from "./addresses.ts";

export interface Destination {
  /** A name in lower case and ASCII, or an address in its one spelling, without brackets. */
  readonly host: string;
  readonly port: number;
}

const NAME_CHARS_MAX = 253;
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
/** What some resolvers take for a number of an address: 127.1, 0x7f.1, 2130706433, 0177.0.0.1. */
const NUMBER_LIKE = /^(?:\d+|0x[0-9a-f]*)$/;

/** @returns the host in its one form, or null when it is neither a name nor a plainly written address */
export function canonicalHost(text: string): string | null {
  const address = canonicalAddress(text);
  if (address !== null) return address;
  // What turns names into ASCII drops tabs and line feeds.
  if (text.length > NAME_CHARS_MAX + 1 || /[\s\p{Cc}]/u.test(text)) return null;
  const isAscii = /^[!-~]*$/.test(text);
  const name = (isAscii ? text.toLowerCase() : domainToASCII(text)).replace(/\.$/, "");
  // Letters of other scripts may stand for digits.
  if (!isAscii && canonicalAddress(name) !== null) return null;
  const labels = name.split(".");
  if (name.length > NAME_CHARS_MAX || !labels.every((label) => LABEL.test(label))) return null;
  return NUMBER_LIKE.test(labels.at(-1)!) ? null : name;
}

/** Takes "host:port" apart, where IPv6 addresses have brackets. @param defaultPort if the port may be absent */
export function parseDestination(text: string, defaultPort?: number): Destination | null {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (bracketed !== undefined && !isIPv6(bracketed)) return null;
  const host = canonicalHost(bracketed ?? plain ?? "");
  const port = digits === undefined ? defaultPort : Number(digits);
  if (host === null || port === undefined || !isPort(port)) return null;
  return { host, port };
}

export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

export function isAddress(host: string): boolean {
  return isIPv4(host) || isIPv6(host);
}

/** As a policy writes it, and clients do. */
export function destinationText({ host, port }: Destination): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}
