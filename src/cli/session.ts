// A command's conversation with the gateway: whom it talks to, and how it ends.
//
// S1. A gateway that is not there is said at once; one that has answered may be away for a moment.
// S2. Ctrl-C ends every request and wait with exit code 130; what the gateway has begun goes on.
// S3. What the gateway refuses becomes lines that say what happened, where, and what to do next.

import { TroupeClient, TroupeProblem, TroupeUnreachable } from "../../sdk/src/index.ts";
import { type Call, CommandFailed, exitCodes, UsageError } from "./command.ts";
import { gatewayAddress } from "./connection.ts";
import { listenForInterrupts } from "./interrupts.ts";
import { plural } from "./text.ts";

const PROBLEM_ENTRIES_SHOWN = 50;

export interface Session {
  readonly call: Call;
  readonly client: TroupeClient;
  /** Aborted by Ctrl-C; the client's requests end with it by themselves. */
  readonly interrupt: AbortSignal;
}

/**
 * Does a command's work against the gateway.
 *
 * @returns the exit code of the work, or 130 when it was interrupted
 * @throws UsageError or CommandFailed for a refusal, and for a gateway that is not there
 */
export async function withGateway(call: Call, work: (session: Session) => Promise<number>): Promise<number> {
  const { baseUrl, token } = gatewayAddress(call);
  const interrupts = listenForInterrupts(() => process.exit(exitCodes.interrupted));
  const contact = firstContact(baseUrl);
  const signal = AbortSignal.any([interrupts.signal, contact.failed]);
  const client = new TroupeClient({ baseUrl, token: token ?? undefined, fetch: contact.fetch, signal });
  try {
    return await work({ call, client, interrupt: interrupts.signal });
  } catch (error) {
    if (interrupts.signal.aborted) return exitCodes.interrupted;
    throw explained(error, token !== null);
  } finally {
    interrupts.release();
  }
}

/** A fetch that ends the whole session when its first request finds nobody (S1). */
function firstContact(baseUrl: string): { readonly fetch: typeof fetch; readonly failed: AbortSignal } {
  const failing = new AbortController();
  let hasAnswered = false;
  return {
    failed: failing.signal,
    fetch: async (input, init) => {
      try {
        const response = await fetch(input, init);
        hasAnswered = true;
        return response;
      } catch (error) {
        if (!hasAnswered && isRefused(error)) failing.abort(nobodyThere(baseUrl));
        throw error;
      }
    },
  };
}

/** Whether there was no connection at all; an unknown host counts too. */
function isRefused(error: unknown): boolean {
  const code = (error as { cause?: { code?: unknown } } | null)?.cause?.code;
  return code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EHOSTUNREACH" || code === "ENETUNREACH";
}

function nobodyThere(baseUrl: string): CommandFailed {
  return new CommandFailed(
    `No Troupe gateway answers at ${baseUrl}.\nStart one with \`troupe up\`, or name another with --url.`,
  );
}

/** What a person is told instead of an error of the client; anything else stays as it is. */
export function explained(error: unknown, hadToken: boolean): unknown {
  if (error instanceof TroupeUnreachable) {
    // An answer that is not the gateway's already says what to check.
    const hint =
      error.status === null ? "\nIs it running? `troupe up` starts one; --url names another one." : "";
    return new CommandFailed(error.message + hint);
  }
  if (!(error instanceof TroupeProblem)) return error;
  const text = [
    `${withCommands(error.detail || error.title || error.message)} (HTTP ${error.status})`,
    ...entryLines(error),
    ...adviceFor(error, hadToken),
  ].join("\n");
  return inputStatuses.has(error.status) ? new UsageError(text) : new CommandFailed(text);
}

/** The API names its own paths as the next step; here it is a command. */
function withCommands(detail: string): string {
  return detail
    .replace(/GET \/api\/v1\/(jobs|runs|bundles)(?=[ ,.;:)]|$)/g, "`troupe $1 list`")
    .replace(/GET \/api\/v1\/operations(?=[ ,.;:)]|$)/g, "`troupe operations`")
    .replace(/GET \/api\/v1\/blueprints(?=[ ,.;:)]|$)/g, "`troupe blueprint list`")
    .replace(/GET \/api\/v1\/blueprints\/([a-z0-9_-]+)(?=[ ,.;:)]|$)/g, "`troupe blueprint show $1`");
}

/** What was sent is wrong in itself: sending it again cannot help. */
const inputStatuses: ReadonlySet<number> = new Set([400, 413, 415, 422]);

function entryLines({ errors }: TroupeProblem): readonly string[] {
  const lines = errors
    .slice(0, PROBLEM_ENTRIES_SHOWN)
    .map(({ path, message }) => `  ${path === "" ? "" : `${path}: `}${message}`);
  const more = errors.length - lines.length;
  return more > 0 ? [...lines, `  … and ${plural(more, "more error")}`] : lines;
}

function adviceFor(problem: TroupeProblem, hadToken: boolean): readonly string[] {
  if (problem.status === 401) {
    return hadToken
      ? ["SVC_API_TOKEN is set here, but the gateway has another token. Set it to the gateway's own."]
      : ["Set SVC_API_TOKEN to the token that the gateway was started with."];
  }
  if (problem.status < 500 || problem.requestId === "") return [];
  return [`The gateway's log has the cause under the request id ${problem.requestId}.`];
}
