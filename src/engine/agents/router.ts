// router: passes every body on, under its own type or the one it came with.

import type { RouterConfig } from "../graph.ts";
import type { JsonValue } from "../json.ts";
import type { Message } from "../message.ts";
import type { Step } from "./step.ts";

export function stepRouter(config: RouterConfig, state: JsonValue, message: Message): Step {
  return {
    state,
    actions: [{ kind: "emit", type: config.emitType ?? message.type, body: message.body, to: null }],
  };
}
