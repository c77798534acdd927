// Deployments of real servers, and clients that find them by their name and call them throughout.

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import { ask, call, uploadBundle } from "./gateway-api.ts";
import { executor, graph } from "./graphs.ts";
import type { Program } from "./program.ts";
import { until } from "./until.ts";

/** Answers with its version, one call after the other; a small program, because many of them are started. */
const serverOf = (version: string) => `
import os, socket
server = socket.create_server(("127.0.0.1", int(os.environ["SVC_PORT_WEB"])), backlog=64)
answer = b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: ${version.length}\\r\\n\\r\\n${version}"
while True:
    client, _ = server.accept()
    try:
        if client.recv(4096): client.sendall(answer)
    except OSError: pass
    client.close()
`;

/** Uploads a server that says its version; or one whose instances end at once. @returns the bundle's id */
export function serverBundle(
  program: Program,
  name: string,
  version: string,
  isBad = false,
): Promise<string> {
  const command = isBad ? ["false"] : ["python3", "-S", "-c", serverOf(version)];
  const web = {
    ...executor("web", command, { lifecycle: "long_lived" }),
    resources: { ports: [{ label: "web", port: "auto" }] },
    services: [
      { name, port_label: "web", checks: [{ type: "tcp", interval_ms: 1_000, timeout_ms: 60_000 }] },
    ],
  };
  return uploadBundle(
    program,
    graph(name, [web], [], { type: "service", policies: { recovery_mode: "cluster_recover" } }),
  );
}

export async function deploy(program: Program, body: JsonObject): Promise<string> {
  return String((await call(program, "POST", "/deployments", body)).deployment_id);
}

export const deploymentOf = (program: Program, id: string) => call(program, "GET", `/deployments/${id}`);

export const update = (program: Program, id: string, body: JsonObject) =>
  call(program, "PATCH", `/deployments/${id}`, body, { "if-match": "*" });

/** With a limit of its own: a node may have to be missed first, for which a lease has to end. */
export const deploymentIs = (program: Program, id: string, status: string, version: number) =>
  until(
    `deployment ${id} is ${status} with version ${version}`,
    async () => {
      const body = await deploymentOf(program, id);
      return body.status === status && body.version === version && body;
    },
    180_000,
  );

/** Calls a service again and again, each time at the address that its name has then. */
export class Callers {
  readonly seen = new Map<string, number>();
  readonly failures: string[] = [];
  #isOver = false;
  readonly #callers: readonly Promise<void>[];

  constructor(program: Program, name: string, count: number) {
    this.#callers = Array.from({ length: count }, async () => {
      while (!this.#isOver) await this.#call(program, name);
    });
  }

  async #call(program: Program, name: string): Promise<void> {
    const { status, body, text } = await ask(program, "GET", `/services/${name}/resolve`);
    if (status !== 200) {
      this.failures.push(`resolve: ${status} ${text}`);
      return;
    }
    try {
      const version = await (await fetch(`http://${body.address}:${body.port}/`)).text();
      this.seen.set(version, (this.seen.get(version) ?? 0) + 1);
    } catch (error) {
      this.failures.push(`${body.run_id}: ${error} ${(error as Error).cause}`);
    }
  }

  /** Ends all calls. @throws when one has failed */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
    assert.deepEqual(this.failures, []);
  }
}
