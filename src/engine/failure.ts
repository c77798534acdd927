// The failure object, svc.error.v1: what went wrong, whose fault it was, and what to do next.
//
// F1. Every failure is made here from a code of the catalogue; no other place writes a failure by hand.
// F2. A failure is small: desc ≤ 160 characters, message ≤ 2 KiB, stderr_tail ≤ 4 KiB.

export type FailureCategory =
  | "user_code"
  | "timeout"
  | "cancelled"
  | "resource"
  | "infrastructure"
  | "validation"
  | "dependency";

interface CatalogueEntry {
  readonly category: FailureCategory;
  /** Whether the same attempt may succeed when it is made again. */
  readonly retryable: boolean;
  readonly remediation: string;
}

/** Every failure code, with what a person can do about it. A retired code is never used again. */
export const failureCatalogue = {
  "executor.exit_nonzero": {
    category: "user_code",
    retryable: true,
    remediation: "Read stderr_tail and the agent's log events, mend the command, and run the job again.",
  },
  "executor.killed_by_signal": {
    category: "user_code",
    retryable: true,
    remediation:
      "The command was ended by a signal: SIGKILL often means that memory ran out, SIGSEGV a crash in native code. Check the command's memory use and its own logs.",
  },
  "executor.timeout": {
    category: "timeout",
    retryable: true,
    remediation: "Make the command faster, give it less work, or raise the node's config.timeout_seconds.",
  },
  "executor.spawn_failed": {
    category: "user_code",
    retryable: false,
    remediation:
      "Check that the command's first word exists on the runtime's PATH or in the payload, and that it may be executed.",
  },
  "executor.staging_failed": {
    category: "user_code",
    retryable: false,
    remediation: "Check the node's upload_path, upload_paths and workdir against the folders in payloads/.",
  },
  "executor.invalid_output": {
    category: "user_code",
    retryable: false,
    remediation:
      "The result object on stdout is not of the documented form; see docs/workers.md for its keys and limits.",
  },
  "executor.artifact_failed": {
    category: "infrastructure",
    retryable: true,
    remediation: "Check the free space and the permissions of SVC_HOME, then run the job again.",
  },
  "executor.workspace_failed": {
    category: "infrastructure",
    retryable: true,
    remediation: "Check the free space and the permissions of SVC_HOME, then run the job again.",
  },
  "executor.runner_unavailable": {
    category: "dependency",
    retryable: false,
    remediation: "This runtime has no runner of the name in config.runner_module; use HostLocal.",
  },
  "executor.outcome_lost": {
    category: "infrastructure",
    retryable: true,
    remediation: "The runner failed before it could report; the runtime's own log has the cause.",
  },
  "module.threw": {
    category: "user_code",
    retryable: true,
    remediation: "Mend the module: the message and the stack's first lines are in details.message.",
  },
  "module.load_failed": {
    category: "user_code",
    retryable: false,
    remediation: "Check config.module: an ES module inside payloads/ that exports an async function handle.",
  },
  "module.timeout": {
    category: "timeout",
    retryable: true,
    remediation: "Make handle() faster or raise the node's config.timeout_seconds.",
  },
  "module.invalid_output": {
    category: "user_code",
    retryable: false,
    remediation: "handle() must return nothing or {emit?, state?, complete?}; see docs/workers.md.",
  },
  "configuration.variable_missing": {
    category: "dependency",
    retryable: false,
    remediation:
      "Set the variable in the environment that the runtime is started with, restart it, and start a new run; or send the job another configuration.",
  },
  "configuration.unreadable": {
    category: "infrastructure",
    retryable: false,
    remediation:
      "Restore the secret.key of SVC_HOME, or set SVC_SECRET_KEY to the key the secrets were sealed with. If it is lost, send the job's secrets again.",
  },
  "resource.unsatisfiable": {
    category: "resource",
    retryable: false,
    remediation: "Ask for fewer slots or another pool, or raise SVC_EXECUTOR_POOL_CAPACITIES.",
  },
  "job.timeout": {
    category: "timeout",
    retryable: false,
    remediation: "Raise policies.timeout_seconds in the manifest, or make the work smaller.",
  },
  "job.message_limit": {
    category: "validation",
    retryable: false,
    remediation:
      "The graph sends messages in a circle without an end. Give the circle a bound (an aggregator that completes the run), or make it a service job.",
  },
  "manifest.invalid": {
    category: "validation",
    retryable: false,
    remediation: "Run `troupe validate` on the manifest; it names every problem.",
  },
  "message.body_too_large": {
    category: "user_code",
    retryable: false,
    remediation: "Write large data to SVC_OUTPUT_DIR and send its path or artifact id instead of the data.",
  },
  "runtime.recovered_interrupted": {
    category: "infrastructure",
    retryable: false,
    remediation:
      "The runtime stopped while this command ran, and the node says that it must not run twice. Check what the command had done, then run the job again.",
  },
  "runtime.bundle_missing": {
    category: "infrastructure",
    retryable: false,
    remediation:
      "The job's bundle is no longer in SVC_HOME; register the bundle again and submit the job anew.",
  },
} as const satisfies Record<string, CatalogueEntry>;

export type FailureCode = keyof typeof failureCatalogue;

/** svc.error.v1 (CONTRACTS §5). Details leave out what does not apply. */
export interface Failure {
  readonly schema_version: "svc.error.v1";
  readonly code: FailureCode;
  readonly desc: string;
  readonly details: {
    readonly message: string;
    readonly category: FailureCategory;
    readonly retryable: boolean;
    readonly agent_id?: string;
    readonly attempt?: number;
    readonly max_attempts?: number;
    readonly exit_code?: number;
    readonly signal?: string;
    readonly stderr_tail?: string;
  };
  readonly severity: "error";
  readonly occurred_at: string;
  readonly remediation: string;
}

export interface FailureContext {
  readonly agentId?: string;
  readonly attempt?: number;
  readonly maxAttempts?: number;
  readonly exitCode?: number;
  readonly signal?: string;
  readonly stderrTail?: string;
}

const DESC_CHARS_MAX = 160;
const MESSAGE_CHARS_MAX = 2_048;
const STDERR_TAIL_CHARS_MAX = 4_096;

/**
 * Makes a failure from the catalogue.
 *
 * @param message one or two sentences: what happened, and where; cut at 2 KiB
 * @param nowMs wall time in ms since 1970
 */
export function makeFailure(
  code: FailureCode,
  message: string,
  nowMs: number,
  context: FailureContext = {},
): Failure {
  const { category, retryable, remediation } = failureCatalogue[code];
  return {
    schema_version: "svc.error.v1",
    code,
    desc: cut(message.split("\n", 1)[0] ?? "", DESC_CHARS_MAX),
    details: {
      message: cut(message, MESSAGE_CHARS_MAX),
      category,
      retryable,
      ...(context.agentId !== undefined && { agent_id: context.agentId }),
      ...(context.attempt !== undefined && { attempt: context.attempt }),
      ...(context.maxAttempts !== undefined && { max_attempts: context.maxAttempts }),
      ...(context.exitCode !== undefined && { exit_code: context.exitCode }),
      ...(context.signal !== undefined && { signal: context.signal }),
      ...(context.stderrTail && { stderr_tail: context.stderrTail.slice(-STDERR_TAIL_CHARS_MAX) }),
    },
    severity: "error",
    occurred_at: new Date(nowMs).toISOString(),
    remediation,
  };
}

function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`;
}
