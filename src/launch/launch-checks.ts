// What preparation found to stand against a launch, in the words of whoever asked for it: every path leads into the
// request's body, or is empty.

import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import { CHECK_TIMEOUT } from "./preparation/findings.ts";
import type { LaunchCheck, LaunchProblem } from "./preparation/preparation.ts";

/** @param configurationPath where the request has the configuration, such as "/config_overrides" */
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
    throw new DomainError(
      "validation_failed",
      `The run cannot be as asked: ${messagesOf(entries)}.`,
      entries,
    );
  }
  if (unmet.length === 0) return;
  const detail = `The run cannot start on this machine: ${messagesOf(entries)}.`;
  throw new DomainError("requirements_not_met", detail, entries);
}

const MESSAGES_MAX = 5;

/** The first few messages in one line; the entries have all of them. */
function messagesOf(entries: readonly { readonly message: string }[]): string {
  const left = entries.length - MESSAGES_MAX;
  const said = entries.slice(0, MESSAGES_MAX).map(({ message }) => message.replace(/\.$/, ""));
  return [...said, ...(left > 0 ? [`and ${left} more`] : [])].join("; ");
}
