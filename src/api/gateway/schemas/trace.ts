// How the trace of a caller reaches a run.

import { Type } from "../../shared/type.ts";
import { idempotencyKeyHeader } from "./common.ts";

/** The headers of what starts a run. */
export const startRunHeaders = Type.Object({
  ...idempotencyKeyHeader.properties,
  traceparent: Type.Optional(
    Type.String({
      description:
        "W3C trace context of the caller: the run belongs to this trace, and its span is a child of the caller's. One that is malformed is ignored, and the run gets a trace of its own.",
      examples: ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    }),
  ),
});
