// Failures of a made-up run.

import { type Failure, type FailureContext, makeFailure } from "../../src/engine/failure.ts";
import type { FailureCode } from "../../src/engine/failure-catalogue.ts";

const place = {
  runId: "run_1",
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  eventId: 1,
};

export function failure(code: FailureCode, message: string, context?: FailureContext): Failure {
  return makeFailure(code, message, 0, place, context);
}
