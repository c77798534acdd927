// Tickets: an address that may be read once, within a minute, by a browser that can send no header with it, such as for a
// download or a picture.
//
// - A ticket is a MAC over the address, its time and the principal it was given to: nothing is stored, and any gateway of the
//   installation takes it. That it is used once is known to the gateway that took it.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const GOOD_FOR_MS = 60_000;
const NONCE_BYTES = 9;
const USED_MAX = 10_000;
/** At the end of an address: time, nonce, principal, MAC. */
const TICKET = /[?&]ticket=(\d{1,16})\.([\w-]{12})\.([\w-]{1,400})\.([\w-]{43})$/;

export class Tickets {
  readonly #key: Buffer;
  readonly #nowMs: () => number;
  /** Nonces of those that were used and are not over yet, oldest first, with their time. */
  readonly #used = new Map<string, number>();

  /** @param parts.key derived from the installation's key for this purpose alone */
  constructor(parts: { readonly key: Buffer; readonly nowMs: () => number }) {
    this.#key = parts.key;
    this.#nowMs = parts.nowMs;
  }

  /** @returns the address with a ticket. @param address path and query */
  issue(address: string, principal: string): string {
    const expiresAtMs = this.#nowMs() + GOOD_FOR_MS;
    const nonce = randomBytes(NONCE_BYTES).toString("base64url");
    const holder = Buffer.from(principal).toString("base64url");
    const signed = `${expiresAtMs}.${nonce}.${holder}`;
    const mac = this.#mac(address, signed).toString("base64url");
    return `${address}${address.includes("?") ? "&" : "?"}ticket=${signed}.${mac}`;
  }

  /** Takes the ticket of an address. @returns the principal that it was given to; null when it has no good one */
  take(address: string): string | null {
    const found = TICKET.exec(address);
    if (found === null) return null;
    const [{ length }, time = "", nonce = "", holder = "", mac = ""] = found;
    const expected = this.#mac(address.slice(0, -length), `${time}.${nonce}.${holder}`);
    if (!timingSafeEqual(expected, Buffer.from(mac, "base64url"))) return null;
    const expiresAtMs = Number(time);
    // By its nonce: there are several ways to write a MAC.
    if (expiresAtMs <= this.#nowMs() || this.#used.has(nonce)) return null;
    this.#use(nonce, expiresAtMs);
    return Buffer.from(holder, "base64url").toString();
  }

  #use(nonce: string, expiresAtMs: number): void {
    const nowMs = this.#nowMs();
    for (const [one, untilMs] of this.#used) {
      if (untilMs > nowMs && this.#used.size < USED_MAX) break;
      this.#used.delete(one);
    }
    this.#used.set(nonce, expiresAtMs);
  }

  #mac(address: string, signed: string): Buffer {
    return createHmac("sha256", this.#key).update(`${signed}\n${address}`).digest();
  }
}
