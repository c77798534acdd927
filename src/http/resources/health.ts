// What the answers about the state of the gateway have in common: why it accepts nothing new, its pools and its lag.

import type { Engine } from "../../engine/engine.ts";
import type { ProcessSample } from "../../observability/metrics/process-meter.ts";
import { Type } from "../core/type.ts";
import { answerObject } from "./schemas.ts";

export const UptimeSeconds = Type.Integer({ description: "Since the start." });

export const Pools = Type.Record(
  Type.String(),
  answerObject({
    capacity: Type.Integer({ description: "Slots there are." }),
    available: Type.Integer(),
    in_use: Type.Integer(),
    queued: Type.Integer({ description: "Requests that wait for slots." }),
    active: Type.Integer({ description: "Leases that are held." }),
  }),
  { description: "Executor pools by name." },
);

export const Lag = answerObject(
  { p50: Type.Number(), p99: Type.Number(), max: Type.Number() },
  { description: "How long the event loop kept callers waiting, over the last minutes." },
);

export const lagShown = ({ p50Ms, p99Ms, maxMs }: ProcessSample["lag"]) => ({
  p50: p50Ms,
  p99: p99Ms,
  max: maxMs,
});

export interface HealthParts {
  readonly engine: Pick<Engine, "unavailable">;
  /** Why the gateway's own writes fail; null while they succeed. */
  readonly storeProblem: () => Promise<string | null>;
}

/** Why nothing new is accepted, by the engine or by the gateway itself; null while all is well. */
export async function whyUnavailable({ engine, storeProblem }: HealthParts): Promise<string | null> {
  return engine.unavailable ?? (await storeProblem());
}
