// The error of a feature that refuses a request: a code from the catalogue of problems
// (src/http/core/problem-codes.ts), a sentence with the next step, and for invalid input one entry per mistake. Nothing
// was changed.

export interface DomainErrorEntry {
  /** JSON Pointer into the request's body. */
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

export type DomainErrorCode =
  | "job_not_found"
  | "run_not_found"
  | "bundle_not_found"
  | "artifact_not_found"
  | "blueprint_not_found"
  | "operation_not_found"
  | "session_not_found"
  | "schedule_not_found"
  | "deployment_not_found"
  | "volume_not_found"
  | "volume_in_use"
  | "event_not_found"
  | "node_not_found"
  | "not_clustered"
  | "last_node"
  | "node_busy"
  | "model_not_found"
  | "model_busy"
  | "model_in_use"
  | "human_request_not_found"
  | "dead_letter_not_found"
  | "service_not_found"
  | "service_not_passing"
  | "blueprint_broken"
  | "blueprint_busy"
  | "blueprint_in_use"
  | "requirements_not_met"
  | "resource_unsatisfiable"
  | "no_free_port"
  | "invalid_transition"
  | "run_ended"
  | "already_answered"
  | "already_retried"
  | "human_request_timed_out"
  | "active_runs"
  | "bundle_in_use"
  | "conflict"
  | "precondition_failed"
  | "validation_failed"
  | "insufficient_storage"
  | "unavailable";

export class DomainError extends Error {
  override readonly name = "DomainError";
  readonly code: DomainErrorCode;
  readonly errors: readonly DomainErrorEntry[];

  constructor(code: DomainErrorCode, detail: string, errors: readonly DomainErrorEntry[] = []) {
    super(detail);
    this.code = code;
    this.errors = errors;
  }
}
