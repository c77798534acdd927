// Run tokens: bearer tokens for reading one run. A dashboard has its run's token, so that neither it nor its browser ever
// sees the API token.
//
// - It admits GET and HEAD at and below /api/v1/runs/<that run>. Elsewhere it is refused like a wrong token.
// - It is derived from the installation's key and the run's id: nothing is stored, and it survives restarts.
// - It is compared in constant time.

import { createHmac, hash, timingSafeEqual } from "node:crypto";

const PREFIX = "trt_";
/** The path prefix of a run's resources; the router does not decode or normalise paths. */
const OF_RUN = /^\/api\/v1\/runs\/([A-Za-z0-9_-]{1,128})(?=[/?]|$)/;

/** The parts of a request that are checked. */
export interface AskedOfRun {
  readonly method?: string | undefined;
  /** Path and query, as they were sent. */
  readonly url?: string | undefined;
}

export class RunTokens {
  readonly #key: Buffer;

  /** @param key derived from the installation's key for this purpose alone */
  constructor(key: Buffer) {
    this.#key = key;
  }

  of(runId: string): string {
    return PREFIX + createHmac("sha256", this.#key).update(runId).digest("base64url");
  }

  /** @returns the run that the request reads with its own token; null when the secret is anything else */
  runRead({ method, url }: AskedOfRun, secret: string): string | null {
    if (!secret.startsWith(PREFIX) || (method !== "GET" && method !== "HEAD")) return null;
    const runId = OF_RUN.exec(url ?? "")?.[1];
    if (runId === undefined) return null;
    return timingSafeEqual(digest(secret), digest(this.of(runId))) ? runId : null;
  }
}

const digest = (text: string) => hash("sha256", text, "buffer");
