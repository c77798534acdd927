// How a command of a sandbox is started beside its relay (relay.mjs), and the variables by which clients find that.

import { fileURLToPath } from "node:url";

/** The relay's file on the machine. */
export const relayFile = fileURLToPath(new URL("./relay.mjs", import.meta.url));

const PORT = 3128;
const http = `http://127.0.0.1:${PORT}`;
const socks = `socks5h://127.0.0.1:${PORT}`;
const DIRECT = "localhost,127.0.0.1,::1";

/** As curl, Python, Go, Node and others look for them. */
export const proxyVariables: Readonly<Record<string, string>> = {
  HTTP_PROXY: http,
  http_proxy: http,
  HTTPS_PROXY: http,
  https_proxy: http,
  ALL_PROXY: socks,
  all_proxy: socks,
  NO_PROXY: DIRECT,
  no_proxy: DIRECT,
  NODE_USE_ENV_PROXY: "1",
};

/** The code with which a command "ends" whose network is not there, or whose hosts cannot be reached. */
export const NO_NETWORK_EXIT = 125;

/** Where things are inside. */
export interface RelayPlaces {
  readonly node: string;
  readonly relay: string;
  readonly socket: string;
}

/**
 * The command behind its relay. It becomes the process that was the shell's; the relay is a child of nobody, so that a command
 * which waits for all its children does not wait for that.
 *
 * @param hosts with ports, tried before the command starts
 */
export function withRelay(
  { file, args }: { readonly file: string; readonly args: readonly string[] },
  { node, relay, socket }: RelayPlaces,
  hosts: readonly string[],
): { readonly file: string; readonly args: readonly string[] } {
  const words = [node, relay, socket, String(PORT), ...hosts].map((word) => `'${word}'`).join(" ");
  const script = [
    "mkfifo -m 600 /tmp/.relay || exit 125",
    `(${words} </dev/null >/tmp/.relay 2>/dev/null &)`,
    "IFS= read -r said </tmp/.relay",
    "rm -f /tmp/.relay",
    `[ "$said" = ready ] || { echo "The sandbox has no network: \${said:-the relay did not start.}" >&2; exit ${NO_NETWORK_EXIT}; }`,
    'exec "$@"',
  ].join("\n");
  return { file: "/bin/sh", args: ["-c", script, "troupe", file, ...args] };
}
