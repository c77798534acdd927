// Sessions of browsers, and links that open them.

import { type Pages, pagesOf } from "./pages.ts";
import type { NewSession, Session, SessionsQuery } from "./records.ts";
import type { CallOptions, KeyedOptions, Transport } from "./transport.ts";

export class SessionsResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Those that are still good, newest first. */
  list(query: SessionsQuery = {}, options: CallOptions = {}): Pages<Session> {
    return pagesOf(this.#transport, "listSessions", { query }, options);
  }

  /**
   * Makes a link that signs a browser in, once within a minute, or a share, which shows one run. Its `path` is on the gateway, and is
   * told this once.
   *
   * @throws TroupeProblem `conflict` when the gateway asks for no token; `run_not_found`
   *
   * @example const { path } = await client.sessions.create({ kind: "share", run_id: runId, days: 2 });
   */
  create(session: NewSession, options: KeyedOptions = {}): Promise<Session> {
    return this.#transport.value("createSession", { body: session }, options);
  }

  get(sessionId: string, options: CallOptions = {}): Promise<Session> {
    return this.#transport.value("getSession", pathOf(sessionId), options);
  }

  /** Ends a session, a link, or a share with all that it has opened. @throws TroupeProblem `session_not_found` */
  async end(sessionId: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json("endSession", pathOf(sessionId), options);
  }
}

const pathOf = (sessionId: string) => ({ path: { session_id: sessionId } });
