// The problems of a launch, collected on the way: as an answer before the run is accepted, or as the failure of a run
// that was.

import type { WebUi } from "../../blueprints/package-description.ts";
import { type FailureCode, failureCatalogue } from "../../engine/failure-catalogue.ts";
import { DomainError, type DomainErrorEntry } from "../../lib/domain-error.ts";
import type { ConfigurationUnreadable } from "../../security/configuration-decryption.ts";

/** The code of a service that is not there, which has a failure of its own. */
export const SERVICE_UNAVAILABLE = "service_unavailable";

const CHECK_TIMEOUT = "check_timeout";

/** Of each list; a person has enough to do with those. */
const PROBLEMS_MAX = 200;

/** One reason why a run cannot be accepted. */
export interface LaunchProblem {
  /**
   * What `path` leads into: the resolved configuration, the run's inputs, a file of the package (its name, `#`, and a
   * pointer into it), or (path "") nothing of these.
   */
  readonly part: "configuration" | "inputs" | "package" | "launch";
  /** JSON Pointer, such as "/documents/folder". */
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

export interface LaunchCheck {
  /** The configuration or the inputs are to blame. */
  readonly errors: readonly LaunchProblem[];
  /** The machine is: what the package requires and is not there. Each message is a whole sentence with the next step. */
  readonly unmet: readonly LaunchProblem[];
  readonly warnings: readonly LaunchProblem[];
  /** The web interface that the resolved configuration asks for: the run needs a port. */
  readonly webUi: WebUi | null;
}

/** What one question has found. */
export type Found = Pick<LaunchCheck, "errors" | "warnings">;

/** The run fails with this; nothing of its preparation is kept. */
export class PreparationFailed extends Error {
  override readonly name = "PreparationFailed";
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

export class Findings {
  webUi: WebUi | null = null;
  /** Where a problem is, for the caller. */
  placed = (problem: LaunchProblem): LaunchProblem => problem;
  readonly #errors: LaunchProblem[] = [];
  readonly #unmet: LaunchProblem[] = [];
  readonly #warnings: LaunchProblem[] = [];

  errors(found: readonly LaunchProblem[]): void {
    this.#errors.push(...found);
  }

  unmet(found: readonly LaunchProblem[]): void {
    this.#unmet.push(...found);
  }

  add({ errors, warnings }: Found): void {
    this.#errors.push(...errors);
    this.#warnings.push(...warnings);
  }

  /** The machine lacks a variable or the key that the configuration needs. */
  addUnreadable({ code, message }: ConfigurationUnreadable): void {
    const { remediation } = failureCatalogue[code];
    this.#unmet.push({ part: "launch", path: "", code, message: `${message} ${remediation}` });
  }

  /** Says nothing against the launch: it is not known (`refuseUnchecked`). */
  addTimeout(timeoutMs: number): void {
    const joined = `The launch could not be checked within ${timeoutMs / 1_000} s`;
    const message = `${joined}: try again; if that does not help, choose a smaller or nearer folder, or make the package's validators faster.`;
    this.#errors.push({ part: "launch", path: "", code: CHECK_TIMEOUT, message });
  }

  result(): LaunchCheck {
    return {
      errors: distinct(this.#errors).map(this.placed),
      unmet: distinct(this.#unmet),
      warnings: distinct(this.#warnings),
      webUi: this.webUi,
    };
  }

  /**
   * @param code of the failure, when the configuration is to blame; what the machine lacks has its own
   * @throws PreparationFailed with everything that was found
   */
  failIfAny(code: FailureCode): void {
    const joined = (problems: readonly LaunchProblem[]) => problems.map(({ message }) => message).join("; ");
    const errors = distinct(this.#errors);
    if (errors.length > 0) throw new PreparationFailed(code, joined(errors));
    const unmet = distinct(this.#unmet);
    const [first] = unmet;
    if (first === undefined) return;
    throw new PreparationFailed(failureOf(first.code), joined(unmet));
  }
}

function failureOf(code: string): FailureCode {
  if (code === SERVICE_UNAVAILABLE) return "service.required_unavailable";
  if (
    code === "configuration.variable_missing" ||
    code === "configuration.variable_withheld" ||
    code === "configuration.unreadable"
  ) {
    return code;
  }
  return "preparation.requirement_unmet";
}

/** Two checks may say the same of one place. */
function distinct(problems: readonly LaunchProblem[]): readonly LaunchProblem[] {
  const byText = new Map(problems.map((problem) => [`${problem.path}\n${problem.message}`, problem]));
  return [...byText.values()].slice(0, PROBLEMS_MAX);
}

/**
 * Problems in the words of the request: every path leads into its body, or is empty.
 *
 * @param configurationPath where the request has the configuration, such as "/config_overrides"
 */
export function entriesOf(
  problems: readonly LaunchProblem[],
  configurationPath: string,
): readonly DomainErrorEntry[] {
  const roots = { configuration: configurationPath, inputs: "/inputs", package: "", launch: "" } as const;
  return problems.map(({ part, path, code, message }) => ({ path: roots[part] + path, code, message }));
}

/** @throws DomainError `unavailable` when all that is known is that the time was over: a busy machine makes nothing invalid */
export function refuseUnchecked({ errors }: Pick<LaunchCheck, "errors">): void {
  const [first] = errors;
  if (first !== undefined && errors.every(({ code }) => code === CHECK_TIMEOUT))
    throw new DomainError("unavailable", first.message);
}

/** @throws DomainError `unavailable`, `validation_failed` or `requirements_not_met`, with everything that was found */
export function refuseFailed(
  { errors, unmet }: Pick<LaunchCheck, "errors" | "unmet">,
  configurationPath: string,
): void {
  refuseUnchecked({ errors });
  const entries = entriesOf([...errors, ...unmet], configurationPath);
  if (errors.length > 0) {
    throw new DomainError("validation_failed", `Invalid run: ${messagesOf(entries)}.`, entries);
  }
  if (unmet.length === 0) return;
  const detail = `The run cannot start on this machine: ${messagesOf(entries)}.`;
  throw new DomainError("requirements_not_met", detail, entries);
}

const MESSAGES_MAX = 5;

/** The first few messages in one line; the entries have all of them. */
function messagesOf(entries: readonly { readonly message: string }[]): string {
  const left = entries.length - MESSAGES_MAX;
  const messages = entries.slice(0, MESSAGES_MAX).map(({ message }) => message.replace(/\.$/, ""));
  return [...messages, ...(left > 0 ? [`and ${left} more`] : [])].join("; ");
}
