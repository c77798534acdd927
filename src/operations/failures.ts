// Why an operation fails: every code, and whether the same request may succeed when it is made again. docs/errors.md
// is made from it. A code that was retired is never used again.

export interface OperationFailureKind {
  readonly retryable: boolean;
  /** What has happened and what to do next, as the documentation says it. */
  readonly meaning: string;
}

export const operationFailures = {
  blueprint_not_found: {
    retryable: false,
    meaning: "The catalog has no such blueprint any more; see SVC_BLUEPRINT_CATALOG.",
  },
  blueprint_broken: {
    retryable: false,
    meaning:
      "The blueprint's folder has mistakes; GET the blueprint lists them. Fix them, then add it again.",
  },
  blueprint_in_use: {
    retryable: true,
    meaning:
      "Runs of the blueprint have begun meanwhile; wait for them or cancel them, then remove it again.",
  },
  requirements_not_met: {
    retryable: true,
    meaning: "The machine lacks what the package requires for being added; the detail names it.",
  },
  resource_failed: {
    retryable: true,
    meaning: "A resource could not be made; the detail has the end of what its command printed.",
  },
  model_failed: {
    retryable: true,
    meaning:
      "A model's content is missing, cannot be read or fetched, or is not what was declared; the detail says which.",
  },
  model_in_use: {
    retryable: true,
    meaning:
      "A run, a deployment or a blueprint needs the model; wait for it or remove it, or remove the model with force.",
  },
  configuration_unreadable: {
    retryable: true,
    meaning: "The package's configuration names a variable that is not set; set it, start again, then retry.",
  },
  node_stays: {
    retryable: true,
    meaning:
      "The node's drain was taken back, or its program was started again, before it had left; ask again if it is to go.",
  },
  join_failed: {
    retryable: true,
    meaning: "The program could not join the cluster; the detail says why. It goes on as before.",
  },
  join_interrupted: {
    retryable: true,
    meaning:
      "The program ended, or was given work, before it had joined; ask again, with the same token while it is good.",
  },
  disk_full: { retryable: true, meaning: "The disk of SVC_HOME is full; free some space, then retry." },
  internal: { retryable: true, meaning: "An unexpected error; the server's log has its cause." },
} as const satisfies Readonly<Record<string, OperationFailureKind>>;

export type OperationFailureCode = keyof typeof operationFailures;

/** The operation ends as failed, with this. */
export class OperationFailed extends Error {
  override readonly name = "OperationFailed";
  readonly code: OperationFailureCode;

  /** @param detail what happened, where, and what to do next; without places of this machine */
  constructor(code: OperationFailureCode, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** Another program works on the operation now, or has ended it: nothing is to be done here any more. */
export class OperationLost extends Error {
  override readonly name = "OperationLost";
}

/** The work was cut off from outside, and is to be done again as it is. */
export class OperationInterrupted extends Error {
  override readonly name = "OperationInterrupted";
}
