// What the routes that start a run have in common.

import type { ProblemCode } from "../../core/problem-codes.ts";
import { Type } from "../../core/type.ts";
import { idempotencyKeyHeader } from "./common.ts";

/** Their headers: how often they may be sent, how long they wait for the end, and the trace of the caller. */
export const startRunHeaders = Type.Object({
  ...idempotencyKeyHeader.properties,
  prefer: Type.Optional(
    Type.String({
      description:
        "wait=N (RFC 7240): answer when what was started has ended, or after N seconds (60 at most) as without it. A value that is no whole number, and every other preference, is ignored.",
      examples: ["wait=30"],
    }),
  ),
  traceparent: Type.Optional(
    Type.String({
      description:
        "W3C trace context of the caller: the run belongs to this trace, and its span is a child of the caller's. One that is malformed is ignored, and the run gets a trace of its own.",
      examples: ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    }),
  ),
});

/** How they refuse what would start one, beside what their bodies and headers bring. */
export const startRunProblems = [
  "blueprint_not_found",
  "blueprint_busy",
  "conflict",
  "requirements_not_met",
  "no_free_port",
] as const satisfies readonly ProblemCode[];
