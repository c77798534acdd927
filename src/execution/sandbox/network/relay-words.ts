// How a command of a sandbox is started beside its relay (relay.mjs), and the variables by which clients find that.

import { fileURLToPath } from "node:url";
import { parseDestination } from "./hosts.ts";

/** The relay's file on the machine. */
export const relayFile = fileURLToPath(new URL("./relay.mjs", import.meta.url));

const PORT = 3128;
const PROXY = `http://127.0.0.1:${PORT}`;
const LOOPBACK = ["localhost", "127.0.0.1", "::1"];

/**
 * As curl, Python, Go, Node and others look for them. Clients for SOCKS need no variable that others stumble over, because
 * their library has no SOCKS: they are told the address.
 *
 * @param allow the hosts of the policy: what it lists of the loopback is the machine's, and not the sandbox's own
 */
export function proxyVariables(allow: readonly string[]): Readonly<Record<string, string>> {
  const listed = new Set(allow.map((entry) => parseDestination(entry)?.host));
  const direct = LOOPBACK.filter((host) => !listed.has(host)).join();
  const names = { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, ALL_PROXY: PROXY, NO_PROXY: direct };
  const lower = Object.entries(names).map(([name, value]) => [name.toLowerCase(), value]);
  return { ...names, ...Object.fromEntries(lower), NODE_USE_ENV_PROXY: "1" };
}

/** The code with which a command "ends" whose network is not there, or whose hosts cannot be reached, and what it "says" then. */
export const NO_NETWORK_EXIT = 125;
const NO_NETWORK = "The sandbox has no network: ";

/** Whether that is how a command has ended. One that pretends it gets no more than the blame on its network. */
export function saysNoNetwork(exitCode: number, stderr: string): boolean {
  return exitCode === NO_NETWORK_EXIT && stderr.startsWith(NO_NETWORK);
}

/** Where things are inside. */
export interface RelayPlaces {
  readonly node: string;
  readonly relay: string;
  readonly socket: string;
}

/**
 * The command behind its relay. It becomes the process that was the shell's; the relay is a child of nobody, so that a command
 * which waits for all its children does not wait for that, and has none of the worker's variables.
 *
 * @param hosts with ports, tried before the command starts
 */
export function withRelay(
  { file, args }: { readonly file: string; readonly args: readonly string[] },
  { node, relay, socket }: RelayPlaces,
  hosts: readonly string[],
): { readonly file: string; readonly args: readonly string[] } {
  const words = ["env", "-i", node, relay, socket, String(PORT), ...hosts]
    .map((word) => `'${word}'`)
    .join(" ");
  const script = [
    `mkfifo -m 600 /tmp/.relay || exit ${NO_NETWORK_EXIT}`,
    `(${words} </dev/null >/tmp/.relay 2>/dev/null &)`,
    "IFS= read -r said </tmp/.relay",
    "rm -f /tmp/.relay",
    `[ "$said" = ready ] || { echo "${NO_NETWORK}\${said:-the relay did not start.}" >&2; exit ${NO_NETWORK_EXIT}; }`,
    'exec "$@"',
  ].join("\n");
  return { file: "/bin/sh", args: ["-c", script, "troupe", file, ...args] };
}
