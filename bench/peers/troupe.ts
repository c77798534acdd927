// Troupe over its runtime API, with a client that waits, and costs as little as those of the other engines, which are in
// the same process as their work.

import { startProgram } from "../../test/support/program.ts";
import { send, submitAndWait } from "../client.ts";
import { Connection, request } from "../connections.ts";
import { fan, pair } from "../manifests.ts";
import { mustHaveEnded } from "../waiting.ts";
import type { Engine } from "./engine.ts";

const BATCH = 1_000;
const headers = { Prefer: "wait=60" };

/** On an empty home. */
export async function startTroupe(): Promise<Engine> {
  const program = await startProgram({ env: { SVC_LOG_LEVEL: "warn" } });
  const { api } = program;
  const url = new URL(api);
  const onePair = request(url, "POST", "/jobs", { headers, body: JSON.stringify(pair) });
  const connections: Connection[] = [];
  const idle: Connection[] = [];
  const connected = () => {
    const connection = new Connection(url);
    connections.push(connection);
    return connection;
  };
  const pairs = JSON.stringify({ items: Array.from({ length: BATCH }, () => pair) });
  return {
    pair: async () => {
      const connection = idle.pop() ?? connected();
      mustHaveEnded(await connection.send(onePair), 1);
      idle.push(connection);
    },
    fan: async (width) => void (await submitAndWait(api, JSON.stringify(fan(width, 1)))),
    batch: async () => {
      const { status, text } = await send(api, "POST", "/jobs:batch", pairs, headers);
      mustHaveEnded({ status, body: text }, BATCH);
    },
    stop: async () => {
      for (const connection of connections) connection.close();
      await program.stop();
    },
  };
}
