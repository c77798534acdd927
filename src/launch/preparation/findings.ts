// What was found to stand against a launch, collected on the way: as an answer before the run is accepted, or as the
// failure of a run that was.

import type { WebUi } from "../../blueprints/package-description.ts";
import { type FailureCode, failureCatalogue } from "../../engine/failure-catalogue.ts";
import type { ConfigurationUnreadable } from "../../security/open-configuration.ts";
import { type LaunchCheck, type LaunchProblem, PreparationFailed } from "./preparation.ts";
import { SERVICE_UNAVAILABLE } from "./requirements.ts";

export const CHECK_TIMEOUT = "check_timeout";

/** Of each list; a person has enough to do with those. */
const PROBLEMS_MAX = 200;

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

  warnings(found: readonly LaunchProblem[]): void {
    this.#warnings.push(...found);
  }

  add({ errors, warnings }: { errors: readonly LaunchProblem[]; warnings: readonly LaunchProblem[] }): void {
    this.errors(errors);
    this.warnings(warnings);
  }

  /** The machine lacks a variable or the key that the configuration needs. */
  addUnreadable({ code, message }: ConfigurationUnreadable): void {
    const { remediation } = failureCatalogue[code];
    this.#unmet.push({ part: "launch", path: "", code, message: `${message} ${remediation}` });
  }

  /** Says nothing against the launch: it is not known (`refuseUnchecked` in src/launch/launch-checks.ts). */
  addTimeout(timeoutMs: number): void {
    const said = `The launch could not be checked within ${timeoutMs / 1_000} s`;
    const message = `${said}: try again; if that does not help, choose a smaller or nearer folder, or make the package's validators faster.`;
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
    const said = (problems: readonly LaunchProblem[]) => problems.map(({ message }) => message).join("; ");
    const errors = distinct(this.#errors);
    if (errors.length > 0) throw new PreparationFailed(code, said(errors));
    const unmet = distinct(this.#unmet);
    const [first] = unmet;
    if (first === undefined) return;
    throw new PreparationFailed(failureOf(first.code), said(unmet));
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

/** Two judges may say the same of one place. */
function distinct(problems: readonly LaunchProblem[]): readonly LaunchProblem[] {
  const byText = new Map(problems.map((problem) => [`${problem.path}\n${problem.message}`, problem]));
  return [...byText.values()].slice(0, PROBLEMS_MAX);
}
