// What an agent's step may ask for. Steps are pure: state and input in, state and actions out.

import type { JsonValue } from "../json.ts";
import type { TaskKind } from "../task-port.ts";

export type Action =
  /** Sends a message along the edges, or to one agent. */
  | { readonly kind: "emit"; readonly type: string; readonly body: JsonValue; readonly to: string | null }
  | { readonly kind: "event"; readonly type: string; readonly payload: JsonValue }
  /** Keeps a body with what the aggregator has collected. */
  | { readonly kind: "collect"; readonly body: JsonValue }
  /** Forgets everything collected. */
  | { readonly kind: "clear" }
  /** Does this message's work outside the engine. */
  | { readonly kind: "task"; readonly task: TaskKind }
  | { readonly kind: "timer"; readonly dueAtMs: number }
  /** The agent has nothing more to do, ever. */
  | { readonly kind: "done" }
  | { readonly kind: "complete_run"; readonly result: JsonValue };

export interface Step {
  readonly state: JsonValue;
  readonly actions: readonly Action[];
}
