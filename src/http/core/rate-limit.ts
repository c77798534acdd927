// A limit on requests per minute, for each principal or client address: a bucket that holds a minute's worth and fills
// evenly. It keeps a bounded number of callers; one that was evicted starts with a full bucket.

const CALLERS_MAX = 10_000;
const MINUTE_MS = 60_000;

interface Bucket {
  /** Requests times a minute's milliseconds: whole numbers, so that nothing is lost to rounding. */
  left: number;
  atMs: number;
}

export class RateLimit {
  readonly #perMinute: number;
  readonly #nowMs: () => number;
  /** In the order of their last request, the longest ago first. */
  readonly #buckets = new Map<string, Bucket>();

  /** @param settings.perMinute at least 1 */
  constructor(settings: { readonly perMinute: number; readonly nowMs: () => number }) {
    this.#perMinute = settings.perMinute;
    this.#nowMs = settings.nowMs;
  }

  /**
   * Counts a request.
   * @returns 0 when it may pass, else in how many whole seconds the next one may
   */
  take(caller: string): number {
    const nowMs = this.#nowMs();
    const full = this.#perMinute * MINUTE_MS;
    const bucket = this.#buckets.get(caller) ?? { left: full, atMs: nowMs };
    // The clock may step back.
    const elapsedMs = Math.max(0, nowMs - bucket.atMs);
    bucket.left = Math.min(full, bucket.left + elapsedMs * this.#perMinute);
    bucket.atMs = nowMs;
    this.#remember(caller, bucket);
    if (bucket.left >= MINUTE_MS) {
      bucket.left -= MINUTE_MS;
      return 0;
    }
    return Math.ceil((MINUTE_MS - bucket.left) / this.#perMinute / 1_000);
  }

  #remember(caller: string, bucket: Bucket): void {
    this.#buckets.delete(caller);
    this.#buckets.set(caller, bucket);
    if (this.#buckets.size <= CALLERS_MAX) return;
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}

/** The caller of an address. Of an IPv6 address the /64 network: a machine usually has all of it. */
export function callerOf(address: string | undefined): string {
  if (address === undefined) return "unknown";
  const mapped = address.lastIndexOf(":ffff:");
  if (!address.includes(":") || (mapped >= 0 && address.includes("."))) {
    return address.slice(address.lastIndexOf(":") + 1);
  }
  const [head = "", tail] = address.split("::");
  const groups = head.split(":");
  const zeros = tail === undefined ? [] : Array.from({ length: 4 }, () => "0");
  return [...groups, ...zeros].slice(0, 4).join(":");
}
