// A database is used by one program at a time: it holds a lock, in a transaction that never ends, on a connection of its
// own. The lock ends with the connection, however the program ends.
//
// - Without the lock nothing is written. A program that has lost its connection takes the lock again before its next
//   write; one that finds it taken writes nothing any more.

import pg from "pg";
import { JournalUnavailable } from "../../engine/journal.ts";
import { madeOnce } from "../../lib/async.ts";
import { StoreUnusable } from "../sql/database.ts";
import { asUnavailable, isLockTimeout } from "./errors.ts";
import { LOCKS } from "./migrate.ts";

const PROGRAM_LOCK = 3;
/** A predecessor that was killed a moment ago may still be on its way out. */
const TAKE_LOCK = `BEGIN; SET LOCAL lock_timeout = '1s'; SET LOCAL idle_in_transaction_session_timeout = 0;
  SELECT pg_advisory_xact_lock(${LOCKS}, ${PROGRAM_LOCK})`;

export class ExclusiveUse {
  readonly #config: pg.ClientConfig;
  readonly #server: string;
  #client: pg.Client | null = null;
  #taken: string | null = null;
  #take = madeOnce(() => this.#connect());

  /** @param server host and database, for texts */
  constructor(config: pg.ClientConfig, server: string) {
    this.#config = config;
    this.#server = server;
  }

  /** @throws StoreUnusable when another program has the database, and what pg throws */
  async begin(): Promise<void> {
    try {
      await this.#take();
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      throw new StoreUnusable(
        `The database ${this.#server} is in use by another Troupe. Stop that one first, or set SVC_DATABASE_URL to another database.`,
      );
    }
  }

  /** Resolves at once while the lock is held. @throws JournalUnavailable */
  async mayWrite(): Promise<void> {
    if (this.#taken !== null) throw new JournalUnavailable(this.#taken, "damaged");
    try {
      await this.#take();
    } catch (error) {
      if (!isLockTimeout(error)) throw asUnavailable(error, this.#server, false);
      this.#taken =
        `Another Troupe has taken the database ${this.#server} while this one had lost its connection to it. This one ` +
        "writes nothing any more: stop it.";
      throw new JournalUnavailable(this.#taken, "damaged");
    }
  }

  /** Why nothing is written any more; null while it may be. */
  get problem(): string | null {
    return this.#taken;
  }

  async end(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => {});
  }

  async #connect(): Promise<void> {
    const client = new pg.Client(this.#config);
    let isLost = false;
    const lost = () => {
      isLost = true;
      if (this.#client !== client) return;
      this.#client = null;
      this.#take = madeOnce(() => this.#connect());
    };
    client.on("error", lost).on("end", lost);
    try {
      await client.connect();
      await client.query(TAKE_LOCK);
      if (isLost) throw new Error("Connection terminated");
      this.#client = client;
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }
}
