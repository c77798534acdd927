// A refused or failed request of the OpenAI protocol, in the words of that protocol.

export interface LlmErrorExtras {
  /** When the same may be tried again. */
  readonly retryAfterSeconds?: number;
  /** What the protocol calls the kind of an error; after the status when absent. */
  readonly type?: string;
  /** The member of the request that is wrong. */
  readonly param?: string;
}

export class LlmError extends Error {
  override readonly name = "LlmError";
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly param: string | null;
  readonly retryAfterSeconds: number | null;

  /**
   * @param code ours, such as `model_not_served`, or an upstream's
   * @param message what happened, and what to do next
   */
  constructor(status: number, code: string, message: string, extras: LlmErrorExtras = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.type = extras.type ?? typeOfStatus(status);
    this.param = extras.param ?? null;
    this.retryAfterSeconds = extras.retryAfterSeconds ?? null;
  }

  /** The body of an answer, or the data of an event. */
  get json(): string {
    return openAiError(this);
  }
}

/** An error as every client of the protocol reads it. */
export function openAiError(error: {
  readonly message: string;
  readonly type: string;
  readonly code: string;
  readonly param?: string | null;
}): string {
  const { message, type, code, param = null } = error;
  return JSON.stringify({ error: { message, type, param, code } });
}

export function typeOfStatus(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}
