// PostgreSQL's errors by what they concern, and what they mean for an operator.

import { JournalUnavailable } from "../../engine/journal.ts";

/** Classes of SQLSTATE that name the rows or the statement: sending the same again meets the same error. */
const ROW_CLASSES: ReadonlySet<string> = new Set(["21", "22", "23", "42", "44", "54"]);
const DEADLOCK = "40P01";
const SERIALIZATION = "40001";
const READ_ONLY = "25006";
const NO_DATABASE = "3D000";
const FORBIDDEN = "42501";
/** The user is not known, or its password is wrong. */
const REFUSED: ReadonlySet<string | null> = new Set(["28000", "28P01"]);
const DISK_FULL = "53100";
const TOO_MANY_CONNECTIONS = "53300";

const NETWORK = /^E[A-Z]+$/;
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** What node-postgres throws without a code. */
const CONNECTION_LOST = /connection (terminated|error)|client was closed|not queryable|timeout/i;

/** What an error concerns: the server or the way to it, which may pass; or the row or the work that caused it. */
export function scopeOf(error: unknown): "passing" | "row" {
  const code = codeOf(error);
  if (code === null) return error instanceof Error && CONNECTION_LOST.test(error.message) ? "passing" : "row";
  if (SQLSTATE.test(code)) return ROW_CLASSES.has(code.slice(0, 2)) ? "row" : "passing";
  return NETWORK.test(code) ? "passing" : "row";
}

function codeOf(error: unknown): string | null {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" && (SQLSTATE.test(code) || NETWORK.test(code)) ? code : null;
}

/** Whether a prepared statement returns other columns now: a newer program has added some. */
export function isOutdatedPlan(error: unknown): boolean {
  // Its text may be in any language.
  return ((error ?? {}) as { readonly routine?: unknown }).routine === "RevalidateCachedQuery";
}

/** Whether the server answered: then a COMMIT that it was sent has not been made. */
export function isAnswer(error: unknown): boolean {
  return SQLSTATE.test(codeOf(error) ?? "");
}

/**
 * Explains an error to an operator in a sentence, with what to do.
 *
 * @param server host and database, without user and password
 */
export function explain(error: unknown, server: string): string {
  const reason = error instanceof Error ? error.message : String(error);
  const code = codeOf(error);
  if (REFUSED.has(code)) {
    return `The server of the database ${server} refuses the user or the password of SVC_DATABASE_URL. Correct them.`;
  }
  switch (code) {
    case NO_DATABASE:
      return `The database ${server} does not exist. Make it with \`createdb\`, or correct SVC_DATABASE_URL.`;
    case FORBIDDEN:
      return `The user of the database ${server} may not do what is needed (${reason}). Make it the owner of the database.`;
    case READ_ONLY:
      return `The database ${server} is read-only. Set SVC_DATABASE_URL to the primary server.`;
    case DISK_FULL:
      return `The disk of the database ${server} is full. Free some space; nothing that was acknowledged is lost.`;
    case TOO_MANY_CONNECTIONS:
      return `The database ${server} takes no more connections (${reason}). Raise its max_connections, or close others.`;
    case DEADLOCK:
    case SERIALIZATION:
      return `The database ${server} ended a transaction in favour of another one (${reason}). It is tried again.`;
    default:
      return isAnswer(error) && scopeOf(error) === "row"
        ? `The database ${server} refuses a statement (${reason}). Undo what was changed in its tables; else report this.`
        : `The database ${server} cannot be used (${reason}). Check that it runs and can be reached.`;
  }
}

/**
 * Converts an error that may pass into the port's own. Others stay unchanged.
 *
 * @param mayBeWritten whether the COMMIT was sent, so that a lost answer leaves its outcome unknown
 */
export function asUnavailable(error: unknown, server: string, mayBeWritten: boolean): unknown {
  if (error instanceof JournalUnavailable || scopeOf(error) === "row") return error;
  return unavailable(error, server, mayBeWritten);
}

/** Converts an error as `asUnavailable`, whatever it concerns. */
export function unavailable(error: unknown, server: string, mayBeWritten: boolean): JournalUnavailable {
  const text = explain(error, server);
  return mayBeWritten && !isAnswer(error)
    ? new JournalUnavailable(`${text} Whether the change was written is not known.`, "unknown")
    : new JournalUnavailable(text);
}
