// The way out of a sandbox: judges a destination, resolves it once, judges the addresses, and connects to one of them.
//
// - A name that is not allowed is not resolved: nothing leaves by way of DNS.
// - What is connected to are the addresses that were judged; nothing resolves a second time.

import type { LookupAddress } from "node:dns";
import { connect, isIPv4, type Socket } from "node:net";
import type { Clock } from "../../../engine/ports.ts";
import { canonicalAddress } from "./addresses.ts";
import type { AllowList } from "./allow-list.ts";
import { type Destination, destinationText, isAddress } from "./hosts.ts";
import type { NetworkReports } from "./reports.ts";

/** All addresses of a name, as dns.lookup gives them. */
export type Lookup = (name: string) => Promise<readonly LookupAddress[]>;

export type Exit = { readonly kind: "connected"; readonly socket: Socket } | NoExit;

export type NoExit =
  | { readonly kind: "denied"; readonly message: string }
  | { readonly kind: "failed"; readonly failure: ExitFailure; readonly message: string };

export type ExitFailure = "unknown_host" | "connection_refused" | "unreachable" | "timed_out" | "other";

export interface ExitParts {
  readonly allow: AllowList;
  readonly lookup: Lookup;
  readonly clock: Pick<Clock, "steadyMs" | "after">;
  readonly reports: NetworkReports;
  /** For resolving and connecting together. */
  readonly connectMs: number;
  /** A connection without a byte in either direction for so long, or twice that, is closed. */
  readonly idleMs: number;
}

/** When a host has several addresses, the next one is tried beside the first after this long. */
const NEXT_ADDRESS_MS = 250;
const KEEP_ALIVE_MS = 60_000;

export class Exits {
  readonly #parts: ExitParts;
  readonly #sockets = new Set<Socket>();

  constructor(parts: ExitParts) {
    this.#parts = parts;
  }

  /**
   * Opens a connection for a client, and reports it, or that it is refused.
   *
   * @param client when it closes, the attempt ends
   */
  async open(destination: Destination, client: Socket): Promise<Exit> {
    const { allow, clock, connectMs } = this.#parts;
    const refusal = allow.refusalOfHost(destination);
    if (refusal !== null) return this.#deny(destination, refusal);
    const ending = new AbortController();
    const end = () => ending.abort();
    const cancel = clock.after(connectMs, end);
    client.once("close", end);
    const gone = new Promise<never>((_, reject) => {
      ending.signal.addEventListener("abort", () => reject(new TimedOut()), { once: true });
    });
    try {
      return await Promise.race([this.#connect(destination, ending.signal), gone]);
    } catch (error) {
      return failed(destination, error as NodeJS.ErrnoException);
    } finally {
      cancel();
      client.off("close", end);
    }
  }

  /** Closes all connections; resolves when they are reported. */
  async close(): Promise<void> {
    await Promise.all(
      [...this.#sockets].map((socket) => {
        const closed = new Promise((resolve) => socket.once("close", resolve));
        socket.destroy();
        return closed;
      }),
    );
  }

  async #connect(destination: Destination, signal: AbortSignal): Promise<Exit> {
    const { allow, lookup, clock, reports } = this.#parts;
    const { host, port } = destination;
    const found = isAddress(host) ? [host] : (await lookup(host)).map(({ address }) => address);
    signal.throwIfAborted();
    const addresses = found.flatMap((address) => canonicalAddress(address) ?? []);
    const allowed = addresses.filter((address) => allow.refusalOfAddress(address, port) === null);
    if (addresses.length === 0) throw Object.assign(new Error("no address"), { code: "ENOTFOUND" });
    if (allowed.length === 0) return this.#deny(destination, allow.refusalOfAddress(addresses[0]!, port)!);
    const socket = await connected(allowed, port, signal);
    const startedMs = clock.steadyMs();
    const closed = reports.opened(destination, canonicalAddress(socket.remoteAddress ?? "") ?? "");
    const stopWatching = this.#watch(socket);
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      stopWatching();
      closed({
        sent_bytes: socket.bytesWritten,
        received_bytes: socket.bytesRead,
        duration_ms: Math.round(clock.steadyMs() - startedMs),
      });
    });
    return { kind: "connected", socket };
  }

  #deny(destination: Destination, { reason, add }: { reason: string; add: string }): Exit {
    this.#parts.reports.denied(destination, reason, add);
    const message = `The sandbox's policy refuses ${destinationText(destination)}: ${reason}. To allow it, add "${add}" to sandbox.network.allow.`;
    return { kind: "denied", message };
  }

  /** Destroys a connection on which nothing moves. */
  #watch(socket: Socket): () => void {
    const { clock, idleMs } = this.#parts;
    let seenBytes = -1;
    let cancel: () => void;
    const look = () => {
      const bytes = socket.bytesRead + socket.bytesWritten;
      if (bytes === seenBytes) {
        socket.destroy();
        return;
      }
      seenBytes = bytes;
      cancel = clock.after(idleMs, look);
    };
    look();
    return () => cancel();
  }
}

class TimedOut extends Error {
  readonly code = "ETIMEDOUT";
}

/** Connects to the first of these addresses that answers. */
function connected(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  const candidates = addresses.map((address) => ({ address, family: isIPv4(address) ? 4 : 6 }));
  const socket = connect({
    port,
    // Never asked for: what follows answers in the place of a resolver.
    host: "judged.invalid",
    lookup: (_name, _options, callback) => callback(null, candidates),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
  const end = () => socket.destroy();
  signal.addEventListener("abort", end, { once: true });
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("connect", () => {
      signal.removeEventListener("abort", end);
      socket.off("error", reject);
      // Who uses it hears of its close.
      socket.on("error", () => {});
      resolve(socket);
    });
  });
}

const FAILURES: Readonly<Record<string, readonly [ExitFailure, string]>> = {
  ENOTFOUND: ["unknown_host", "its name has no address"],
  EAI_AGAIN: ["unknown_host", "the name server does not answer"],
  ECONNREFUSED: ["connection_refused", "nothing listens at its port"],
  ENETUNREACH: ["unreachable", "there is no way to its network"],
  EHOSTUNREACH: ["unreachable", "there is no way to it"],
  ETIMEDOUT: ["timed_out", "it does not answer"],
};

function failed(destination: Destination, error: NodeJS.ErrnoException): Exit {
  const [failure, why] = FAILURES[error.code ?? ""] ?? ["other" as const, error.code ?? error.message];
  return { kind: "failed", failure, message: `${destinationText(destination)} cannot be reached: ${why}.` };
}
