// A command's conversation with a server: whom it talks to, and how it ends.
//
// - An unreachable server fails immediately; one that has answered may be unreachable for a moment.
// - Ctrl-C ends every request and wait with exit code 130; what the server has started continues.
// - An error of the server becomes lines that tell what happened, where, and what to do next.

import {
  TroupeClient,
  type TroupeClientOptions,
  TroupeProblem,
  TroupeRuntime,
  TroupeUnreachable,
} from "../../sdk/src/index.ts";
import { type Call, CommandFailed, exitCodes, UsageError } from "./command.ts";
import { gatewayAddress, runtimeAddress, type ServerAddress } from "./connection.ts";
import { listenForInterrupts } from "./interrupts.ts";
import { plural } from "./text.ts";

const PROBLEM_ENTRIES_SHOWN = 50;

/** One use of a command that talks to a server: most to the gateway, some to the runtime API, none to both. */
export interface ServerCall extends Call {
  readonly client: TroupeClient;
  readonly runtime: TroupeRuntime;
  /** Aborted by Ctrl-C; the clients' requests end with it by themselves. */
  readonly interrupt: AbortSignal;
  /** Whether the server is part of this process, and ends with the command. */
  readonly isOwnServer: boolean;
}

interface ServerOptions {
  readonly isOwnServer?: boolean;
  /** How the command says where the gateway is. */
  readonly addressOf?: (call: Call) => ServerAddress;
}

/**
 * Does a command's work against a server. Its address is read when the work first asks for a client.
 *
 * @returns the exit code of the work, or 130 when it was interrupted
 * @throws UsageError or CommandFailed for what the server refuses, and for one that is not there
 */
export async function withServer(
  call: Call,
  work: (call: ServerCall) => Promise<number>,
  { isOwnServer = false, addressOf = gatewayAddress }: ServerOptions = {},
): Promise<number> {
  const interrupts = listenForInterrupts(() => process.exit(exitCodes.interrupted));
  let server: ServerAddress | null = null;
  const contacted = (address: ServerAddress) => {
    server = address;
    return contactOptions(address, interrupts.signal);
  };
  let client: TroupeClient | null = null;
  let runtime: TroupeRuntime | null = null;
  try {
    return await work({
      ...call,
      interrupt: interrupts.signal,
      isOwnServer,
      get client() {
        client ??= new TroupeClient(contacted(addressOf(call)));
        return client;
      },
      get runtime() {
        runtime ??= new TroupeRuntime(contacted(runtimeAddress(call)));
        return runtime;
      },
    });
  } catch (error) {
    if (interrupts.signal.aborted) return exitCodes.interrupted;
    throw server === null ? error : explained(error, server);
  } finally {
    interrupts.release();
  }
}

/** A client's options, with a fetch that aborts everything when its first request finds no server. */
function contactOptions(server: ServerAddress, interrupt: AbortSignal): TroupeClientOptions {
  const { baseUrl, token, fetch } = server;
  const failing = new AbortController();
  let hasAnswered = false;
  return {
    baseUrl,
    token: token ?? undefined,
    signal: AbortSignal.any([interrupt, failing.signal]),
    fetch: async (input, init) => {
      try {
        const response = await fetch(input, init);
        hasAnswered = true;
        return response;
      } catch (error) {
        const code = (error as { cause?: { code?: unknown } } | null)?.cause?.code;
        if (!hasAnswered && noConnection.has(code)) failing.abort(unreachable(server));
        throw error;
      }
    },
  };
}

/** Codes for an unreachable server; of a socket also when there is no file, or it is another user's. */
const noConnection: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "EACCES",
]);

const unreachable = ({ name, place }: ServerAddress) =>
  new CommandFailed(
    `No Troupe ${name} answers at ${place}.\nStart one with \`troupe up\`, or name another with ${optionOf(name)}.`,
  );

const isItThere = (name: ServerAddress["name"]) =>
  name === "runtime protocol"
    ? "Is it running, has it TLS (https://HOST:PORT), and is that its SVC_GRPC_PORT?"
    : "Is it running?";
const optionOf = (name: ServerAddress["name"]) => (name === "runtime protocol" ? "--address" : "--url");

/** Turns an error of a client into one for people; anything else stays as it is. */
export function explained(error: unknown, server: ServerAddress): unknown {
  if (error instanceof TroupeUnreachable) {
    // The message about an answer of another server already tells what to check.
    const hint =
      error.status === null
        ? `\n${isItThere(server.name)} \`troupe up\` starts one; ${optionOf(server.name)} names another one.`
        : "";
    return new CommandFailed(error.message.replaceAll(server.baseUrl, server.place) + hint);
  }
  if (!(error instanceof TroupeProblem)) return error;
  const status = server.name === "runtime protocol" ? "" : ` (HTTP ${error.status})`;
  const text = [
    `${error.detail || error.title || error.message}${status}`,
    ...entryLines(error),
    ...adviceFor(error, server),
  ].join("\n");
  return server.name !== "runtime" && inputStatuses.has(error.status)
    ? new UsageError(text)
    : new CommandFailed(text);
}

/** Of the gateway: what was sent is invalid, so that sending it again cannot help. */
const inputStatuses: ReadonlySet<number> = new Set([400, 413, 415, 422]);

function entryLines({ errors }: TroupeProblem): readonly string[] {
  const lines = errors
    .slice(0, PROBLEM_ENTRIES_SHOWN)
    .map(({ path, message }) => `  ${path === "" ? "" : `${path}: `}${message}`);
  const more = errors.length - lines.length;
  return more > 0 ? [...lines, `  … and ${plural(more, "more error")}`] : lines;
}

/** The command that is the next step, by the problem's code. */
const nextCommands: Readonly<Record<string, string>> = {
  job_not_found: "`troupe jobs list` lists the jobs.",
  run_not_found: "`troupe runs list` lists the runs.",
  bundle_not_found: "`troupe bundles list` lists the bundles.",
  bundle_in_use: "`troupe jobs list` lists the jobs.",
  node_not_found: "`troupe node list` lists the nodes.",
  schedule_not_found: "`troupe schedules` lists the schedules.",
  event_not_found: "`troupe events list` lists the events.",
  operation_not_found: "`troupe operations` lists the operations.",
  blueprint_not_found: "`troupe blueprint list` lists the blueprints.",
  blueprint_broken: "`troupe blueprint show <id>` lists the mistakes.",
};

function adviceFor(problem: TroupeProblem, { name, token }: ServerAddress): readonly string[] {
  if (problem.status === 401) {
    const variable = name === "runtime" ? "SVC_RUNTIME_API_TOKEN" : "SVC_API_TOKEN";
    return token === null
      ? [`Set ${variable} to the token that the ${name} was started with.`]
      : [
          `${variable}${name === "runtime protocol" ? ", or --token," : ""} is set here, but the ${name} has another token. Set it to the ${name}'s own.`,
        ];
  }
  const next = nextCommands[problem.code];
  if (next !== undefined) return [next];
  if (problem.status < 500 || problem.requestId === "") return [];
  return [`The ${name}'s log has the cause under the request id ${problem.requestId}.`];
}
