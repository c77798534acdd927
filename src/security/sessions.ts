// Sessions of browsers: what a person has who signed in to the console, and the links that open one.
//
// - A session is two random secrets. One is in a cookie, which the browser sends to every port of the host; the other is held by
//   pages of the gateway's own origin alone, so a server at another port that is sent the cookie can do nothing with it.
// - Only hashes are kept. Secrets have 256 random bits, so a plain hash cannot be guessed back.
// - A session lasts twelve hours from its last use. What another gateway has ended ends here within five seconds.
// - When the API tokens change, all of them end: one of the tokens may have become known.

import { createHmac, hash, randomBytes } from "node:crypto";
import { DomainError } from "../lib/domain-error.ts";
import type { SessionReads, SessionRecord, SessionWrites } from "./session-records.ts";

const SECRET_BYTES = 32;
const HOUR_MS = 3_600_000;
/** Since its last use. */
const SESSION_MS = 12 * HOUR_MS;
/** A session that was used is extended when so much of its time is over. */
const EXTEND_AFTER_MS = SESSION_MS / 50;
const LINK_MS = 60_000;
export const SHARE_DAYS = 7;
const KNOWN_FOR_MS = 5_000;
const KNOWN_MAX = 1_000;

export interface SessionParts {
  readonly records: {
    readonly sessions: SessionReads;
    write<T>(work: (writes: { readonly sessions: SessionWrites }) => Promise<T>): Promise<T>;
  };
  /** Derived from the installation's key for this purpose alone. */
  readonly key: Buffer;
  readonly apiTokens: readonly string[];
  readonly nowMs: () => number;
  readonly newId: () => string;
}

/** What was made, with the secret that is shown once. */
export interface Made {
  readonly session: SessionRecord;
  readonly secret: string;
}

export interface Opened extends Made {
  /** The session's second key. */
  readonly key: string;
}

/** What a browser shows. */
export interface Shown {
  readonly secret: string;
  /** Null: a request that no page of ours has sent, such as one for a document. */
  readonly key: string | null;
}

export type Found =
  | { readonly kind: "none" }
  /** A session, and whether its second key was shown. A key that is wrong is none. */
  | { readonly kind: "session"; readonly session: SessionRecord; readonly hasKey: boolean };

const NONE: Found = { kind: "none" };

interface Known {
  readonly session: SessionRecord;
  readonly readAtMs: number;
}

export class Sessions {
  readonly #parts: SessionParts;
  readonly #mark: string;
  /** Those that were asked for in the last seconds, by the hash of their secret. */
  readonly #known = new Map<string, Known>();
  readonly #onEnd = new Set<() => void>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
    const tokens = [...parts.apiTokens].sort();
    this.#mark = createHmac("sha256", parts.key).update(JSON.stringify(tokens)).digest("base64url");
  }

  /** Whether there is anything to sign in to. */
  get areNeeded(): boolean {
    return this.#parts.apiTokens.length > 0;
  }

  /** Prepares a link that opens one session within a minute. */
  prepareLink(): (writes: { readonly sessions: SessionWrites }) => Promise<Made> {
    return this.#prepare("link", LINK_MS, { runId: null });
  }

  /** Prepares a link to a run, for people who have no token. @param days how long it is good */
  prepareShare(runId: string, days: number): (writes: { readonly sessions: SessionWrites }) => Promise<Made> {
    return this.#prepare("share", days * 24 * HOUR_MS, { runId });
  }

  #prepare(kind: "link" | "share", forMs: number, { runId }: { readonly runId: string | null }) {
    if (!this.areNeeded) {
      throw new DomainError(
        "conflict",
        "Nobody needs a link here: without SVC_API_TOKEN the gateway asks for no sign-in. Open /console.",
      );
    }
    return async ({ sessions }: { readonly sessions: SessionWrites }): Promise<Made> => {
      const secret = newSecret();
      const session = this.#record(kind, secret, { expiresInMs: forMs, runId });
      await sessions.insert(session);
      return { session, secret };
    };
  }

  /** Opens a session for somebody who has shown the API token. */
  async openForToken(): Promise<Opened> {
    return this.#open({ runId: null, openedBy: null });
  }

  /** Opens a session with a link; the link is good no more. @returns null when it is not good */
  async openWithLink(secret: string): Promise<Opened | null> {
    const link = await this.#good(secret, "link");
    if (link === null) return null;
    const isTaken = await this.#parts.records.write(({ sessions }) => sessions.end(link.sessionId));
    // Of two that come at once, one takes it.
    return isTaken ? this.#open({ runId: null, openedBy: null }) : null;
  }

  /** Opens a session that reads the run of a share. @returns null when the share is not good */
  async openWithShare(secret: string): Promise<Opened | null> {
    const share = await this.#good(secret, "share");
    return share === null ? null : this.#open({ runId: share.runId, openedBy: share.sessionId });
  }

  /** Finds the session of a request, and prolongs it. */
  async find(shown: Shown): Promise<Found> {
    const session = await this.#shown(shown);
    if (session === null) return NONE;
    const { key } = shown;
    await this.#prolong(session);
    return { kind: "session", session, hasKey: key !== null };
  }

  /** Whether a session goes on; asking does not prolong it. */
  async isGood(shown: Shown): Promise<boolean> {
    return (await this.#shown(shown)) !== null;
  }

  async #shown({ secret, key }: Shown): Promise<SessionRecord | null> {
    const session = await this.#good(secret, "session");
    return key !== null && hashOf(key) !== session?.keyHash ? null : session;
  }

  /** Calls `ended` behind every end that was asked for here. */
  onEnd(ended: () => void): void {
    this.#onEnd.add(ended);
  }

  /** Ends a session, or a share with all sessions that it has opened. @returns false when there is none */
  async end(sessionId: string): Promise<boolean> {
    const isEnded = await this.#parts.records.write(({ sessions }) => sessions.end(sessionId));
    for (const [secretHash, { session }] of this.#known) {
      if (session.sessionId === sessionId || session.openedBy === sessionId) this.#known.delete(secretHash);
    }
    for (const ended of this.#onEnd) ended();
    return isEnded;
  }

  async #open({ runId, openedBy }: Pick<SessionRecord, "runId" | "openedBy">): Promise<Opened> {
    const secret = newSecret();
    const key = newSecret();
    const made = this.#record("session", secret, { expiresInMs: SESSION_MS, runId });
    const session = { ...made, keyHash: hashOf(key), openedBy };
    await this.#parts.records.write(async ({ sessions }) => {
      await sessions.forget(session.createdAtMs);
      await sessions.insert(session);
    });
    return { session, secret, key };
  }

  async #good(secret: string, kind: SessionRecord["kind"]): Promise<SessionRecord | null> {
    const session = await this.#read(hashOf(secret));
    const isGood =
      session?.kind === kind &&
      session.expiresAtMs > this.#parts.nowMs() &&
      session.tokensMark === this.#mark &&
      this.areNeeded;
    return isGood ? session : null;
  }

  async #read(secretHash: string): Promise<SessionRecord | null> {
    const nowMs = this.#parts.nowMs();
    const known = this.#known.get(secretHash);
    if (known !== undefined && Math.abs(nowMs - known.readAtMs) < KNOWN_FOR_MS) return known.session;
    const session = await this.#parts.records.sessions.ofSecret(secretHash);
    this.#known.delete(secretHash);
    if (session?.kind === "session") this.#remember(session, nowMs);
    return session;
  }

  #remember(session: SessionRecord, readAtMs: number): void {
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(session.secretHash, { session, readAtMs });
  }

  async #prolong(session: SessionRecord): Promise<void> {
    const nowMs = this.#parts.nowMs();
    const expiresAtMs = nowMs + SESSION_MS;
    if (expiresAtMs - session.expiresAtMs < EXTEND_AFTER_MS) return;
    // Before the write, so that requests at the same moment do not write, too.
    this.#remember({ ...session, expiresAtMs }, nowMs);
    const { records } = this.#parts;
    // A disk that is full is no reason to refuse a request that only reads: the next one tries again.
    await records
      .write(({ sessions }) => sessions.extend(session.sessionId, expiresAtMs))
      .catch(() => this.#known.delete(session.secretHash));
  }

  #record(
    kind: SessionRecord["kind"],
    secret: string,
    { expiresInMs, runId }: { readonly expiresInMs: number; readonly runId: string | null },
  ): SessionRecord {
    const createdAtMs = this.#parts.nowMs();
    return {
      sessionId: `session_${this.#parts.newId()}`,
      kind,
      secretHash: hashOf(secret),
      keyHash: null,
      runId,
      openedBy: null,
      tokensMark: this.#mark,
      createdAtMs,
      expiresAtMs: createdAtMs + expiresInMs,
    };
  }
}

const newSecret = () => randomBytes(SECRET_BYTES).toString("base64url");
const hashOf = (secret: string) => hash("sha256", secret, "base64url");
