// What a caller is told when something asked of a run is refused: a code, a sentence with the next step, and for a wrong
// body one entry per mistake. Nothing was changed.

export type RunRefusalCode =
  | "human_request_not_found"
  | "dead_letter_not_found"
  | "already_answered"
  | "human_request_timed_out"
  | "already_retried"
  | "conflict"
  | "run_ended"
  | "validation_failed";

export interface RunRefusalEntry {
  /** JSON Pointer into the request's body. */
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

export class RunRefusal extends Error {
  override readonly name = "RunRefusal";
  readonly code: RunRefusalCode;
  readonly errors: readonly RunRefusalEntry[];

  constructor(code: RunRefusalCode, detail: string, errors: readonly RunRefusalEntry[] = []) {
    super(detail);
    this.code = code;
    this.errors = errors;
  }
}
