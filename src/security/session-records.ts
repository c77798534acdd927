// What is kept of the sessions of browsers and of the links that open them. Ports, implemented in src/store.

import type { Page } from "../lib/page.ts";

/**
 * `session`: what a signed-in browser has. `link`: opens one session, once. `share`: opens sessions that read one run.
 */
export type SessionKind = "session" | "link" | "share";

export interface SessionRecord {
  /** `session_` and a time-ordered id: by which people know it. */
  readonly sessionId: string;
  readonly kind: SessionKind;
  /** Of the secret that its holder shows, which is not kept. */
  readonly secretHash: string;
  /** Of a session's second key, which only pages of the gateway's own origin have. */
  readonly keyHash: string | null;
  /** The one run that it reads; null: it may do what the token may. */
  readonly runId: string | null;
  /** The share that a session was opened with. */
  readonly openedBy: string | null;
  /** Tells whether the API tokens are those from when it was made. */
  readonly tokensMark: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

export interface SessionReads {
  /** Expired ones, too. */
  session(sessionId: string): Promise<SessionRecord | null>;
  /** Expired ones, too. */
  ofSecret(secretHash: string): Promise<SessionRecord | null>;
  /** Those that are still good, newest first. */
  list(page: {
    readonly kind: SessionKind | null;
    readonly runId: string | null;
    readonly nowMs: number;
    readonly limit: number;
    /** Of the last one on the page before; null: the first page. */
    readonly after: string | null;
  }): Promise<Page<SessionRecord>>;
}

export interface SessionWrites {
  insert(session: SessionRecord): Promise<void>;
  extend(sessionId: string, expiresAtMs: number): Promise<void>;
  /** Removes it, and the sessions that were opened with it. @returns false when there is none */
  end(sessionId: string): Promise<boolean>;
  /** Removes those that were good until then. */
  forget(beforeMs: number): Promise<void>;
}
