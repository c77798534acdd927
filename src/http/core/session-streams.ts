// Streams end with the session that a browser has opened them in: at once when it is ended here, else within
// CHECK_MS.

import type { ServerResponse } from "node:http";
import type { Sessions, Shown } from "../../security/sessions.ts";

const CHECK_MS = 5_000;

export class SessionStreams {
  readonly #sessions: Pick<Sessions, "isGood" | "onEnd">;
  readonly #open = new Map<ServerResponse, Shown>();
  #timer: NodeJS.Timeout | null = null;

  constructor(sessions: Pick<Sessions, "isGood" | "onEnd">) {
    this.#sessions = sessions;
    sessions.onEnd(() => void this.#check());
  }

  /** Ends the response when the session is over. */
  hold(response: ServerResponse, shown: Shown): void {
    this.#open.set(response, shown);
    response.once("close", () => {
      this.#open.delete(response);
      if (this.#open.size > 0 || this.#timer === null) return;
      clearInterval(this.#timer);
      this.#timer = null;
    });
    this.#timer ??= setInterval(() => void this.#check(), CHECK_MS).unref();
  }

  async #check(): Promise<void> {
    for (const [response, shown] of this.#open) {
      // What cannot be read now is asked for again.
      if (!(await this.#sessions.isGood(shown).catch(() => true))) response.end();
    }
  }
}
