// Troupe over its runtime API, with a client that waits.

import { startProgram } from "../../test/support/program.ts";
import { send, submitAndWait } from "../client.ts";
import { fan, pair } from "../manifests.ts";
import type { Engine } from "./engine.ts";

const BATCH = 1_000;

/** On an empty home. */
export async function startTroupe(): Promise<Engine> {
  const program = await startProgram({ env: { SVC_LOG_LEVEL: "warn" } });
  const { api } = program;
  const onePair = JSON.stringify(pair);
  const pairs = JSON.stringify({ items: Array.from({ length: BATCH }, () => pair) });
  return {
    pair: async () => void (await submitAndWait(api, onePair)),
    fan: async (width) => void (await submitAndWait(api, JSON.stringify(fan(width, 1)))),
    batch: async () => {
      const { text } = await send(api, "POST", "/jobs:batch", pairs, { prefer: "wait=60" });
      const ended = text.match(/"status":"completed"/g)?.length ?? 0;
      if (ended < BATCH) throw new Error("not all have completed");
    },
    stop: async () => void (await program.stop()),
  };
}
