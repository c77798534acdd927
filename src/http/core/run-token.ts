// Run tokens: bearer tokens that are good for reading one run, and nothing else. A dashboard has its run's, so that
// neither it nor its browser ever sees the API token.
//
// U1. It admits GET and HEAD at and below /api/v1/runs/<that run>. Anywhere else it is as good as a wrong token.
// U2. It is made of the installation's key and the run's id: nothing is stored, and a restart changes nothing.
// U3. It is compared in constant time.

import { createHmac, hash, timingSafeEqual } from "node:crypto";

const PREFIX = "trt_";
/** What a run's own resources begin with; nothing decodes or resolves a path on its way to its route. */
const OF_RUN = /^\/api\/v1\/runs\/([A-Za-z0-9_-]{1,128})(?=[/?]|$)/;

/** What is looked at of a request. */
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

  /** @returns the run that the request reads with its own token; null when the secret is anything else (U1) */
  runRead({ method, url }: AskedOfRun, secret: string): string | null {
    if (!secret.startsWith(PREFIX) || (method !== "GET" && method !== "HEAD")) return null;
    const runId = OF_RUN.exec(url ?? "")?.[1];
    if (runId === undefined) return null;
    return timingSafeEqual(digest(secret), digest(this.of(runId))) ? runId : null;
  }
}

const digest = (text: string) => hash("sha256", text, "buffer");
