// Addresses of machines, as settings and services give them.

import { isIPv6 } from "node:net";

/** Whether only the machine itself reaches an address. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|::ffff:127(\.\d{1,3}){3})$/i.test(host);
}

/** Whether an address stands for all of a machine's: it is bound, and cannot be called from elsewhere. */
export function isEvery(host: string): boolean {
  return host === "0.0.0.0" || (isIPv6(host) && /^[0:]+$/.test(host));
}
