// Listening: an address that is taken or forbidden is explained in a sentence.

import { chmodSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { tryToListen } from "../execution/machine.ts";

/** The program cannot start; the message tells why, and what to do. */
export class StartFailed extends Error {
  override readonly name = "StartFailed";
  /** Whether it would be the same next time, so that no service manager should start the program again. */
  readonly isFinal: boolean;

  constructor(message: string, isFinal = false) {
    super(message);
    this.isFinal = isFinal;
  }
}

/**
 * How many connections may wait for the thread while it is busy; the kernel's net.core.somaxconn, 4096, may allow fewer. One
 * that finds no place tries again after a second.
 */
const BACKLOG = 4096;

export interface ListenAddress {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** The variable that sets the port. */
  readonly variable: string;
}

/**
 * Starts to listen.
 *
 * @returns the address as a URL, without a path
 * @throws StartFailed
 */
export async function listen(server: FastifyInstance, address: ListenAddress): Promise<string> {
  const { host } = address;
  await server.listen({ host, port: address.port, backlog: BACKLOG }).catch((error) => {
    throw new StartFailed(explainAddress(error, address));
  });
  const { port } = server.server.address() as AddressInfo;
  return `http://${addressOf(host, port)}`;
}

export const addressOf = (host: string, port: number) => `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** Why it is impossible to listen at an address; null when it is possible, or when any port will do. */
export async function refusedAddress(address: ListenAddress): Promise<StartFailed | null> {
  const code = await tryToListen(address.host, address.port);
  return code === null ? null : new StartFailed(explainAddress({ code, message: code }, address));
}

/**
 * Starts to listen at a socket that only this user may connect to. Whatever has its path is a predecessor's: the home is
 * locked.
 *
 * @throws StartFailed
 */
export async function listenAtSocket(server: FastifyInstance, path: string): Promise<void> {
  // Between its making and the change of its mode it must not be open to others.
  const umask = process.umask(0o077);
  try {
    rmSync(path, { force: true });
    await server.listen({ path, backlog: BACKLOG });
    chmodSync(path, 0o600);
  } catch (error) {
    throw new StartFailed(`Listening at the socket ${path} failed: ${(error as Error).message}.`);
  } finally {
    process.umask(umask);
  }
}

export function explainAddress(
  error: Pick<NodeJS.ErrnoException, "code" | "message">,
  { host, port, variable }: ListenAddress,
): string {
  if (error.code === "EADDRINUSE") {
    return `Port ${port} on ${host} is taken. See who has it with "ss -ltnp 'sport = :${port}'", or choose another with ${variable} (0: any free one).`;
  }
  if (error.code === "EACCES")
    return `Port ${port} needs more rights than this user has. Choose one above 1023 with ${variable}.`;
  return `Listening on ${host}:${port} failed: ${error.message}.`;
}
