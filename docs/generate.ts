// Makes docs/errors.md from the catalogues of failures, problems and operations' errors: `npm run docs`.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { makeFailure } from "../src/engine/failure.ts";
import { type FailureKind, failureCatalogue } from "../src/engine/failure-catalogue.ts";
import { type ProblemKind, problemCodes } from "../src/http/core/problem-codes.ts";
import { type OperationFailureKind, operationFailures } from "../src/operations/failures.ts";

/** Where the page is, inside the project. */
export const ERRORS_PAGE = "docs/errors.md";

const example = makeFailure(
  "executor.exit_nonzero",
  'The command "python3" ended with exit code 1. It said: FileNotFoundError: orders.csv',
  Date.UTC(2026, 0, 31, 9),
  {
    runId: "run_06f0q1v6k2m4",
    traceId: "0af7651916cd43dd8448eb211c80319c",
    spanId: "b7ad6b7169203331",
    eventId: 17,
  },
  { agentId: "read", attempt: 2, maxAttempts: 2, exitCode: 1, stderrTail: "FileNotFoundError: orders.csv\n" },
);

/** The whole page. */
export function errorsPage(): string {
  return `# Errors

A **failure** says why a run or an attempt failed, a **problem** why the gateway refused a request, an **operation's error** why an
operation failed. A code never changes its meaning, so programs may compare it; the texts may change. This page is generated from
the program's catalogues (\`npm run docs\`).

## Failures

A failure is an object of the schema \`svc.error.v1\`. A failed run has it as \`failure\`, and the events that report it
(\`sandbox_job_failed\`, \`agent_failed\`, \`job_failed\`) have it as \`error\`:

\`\`\`json
${JSON.stringify(example, null, 2)}
\`\`\`

- \`desc\` is the first line of \`details.message\`, at most 160 characters. The message has at most 2 KiB, \`stderr_tail\` the last
  4 KiB of the command's stderr, the whole at most 16 KiB. Secrets are replaced by \`[redacted]\`. Details that do not apply are left out.
- \`details.category\`: \`user_code\` (the bundle), \`timeout\`, \`resource\` (slots, processes, memory), \`infrastructure\` (the runtime's disk
  or process), \`validation\` (the request), \`dependency\` (something is missing).
- \`details.retryable\`: whether another attempt may succeed. Retryable failures are retried up to the node's \`max_attempts\`, others never.
- \`event_id\` is the number of the event that reported it first, as a string; \`span_id\` its span in the timeline; \`links\` are paths of
  the gateway.

${table(["code", "category", "retryable", "what has happened", "what to do"], failureRows())}
## Problems

Every error of the gateway is \`application/problem+json\` ([example](gateway-api.md#errors)); \`detail\` has more than this table.

${table(["status", "code", "meaning, and what to do"], problemRows())}
## Operations

The \`error\` of a failed [operation](gateway-api.md#operations). Retryable: the same request, with a new Idempotency-Key, may succeed.

${table(["code", "retryable", "meaning, and what to do"], operationRows())}`;
}

function failureRows(): string[][] {
  return Object.entries<FailureKind>(failureCatalogue).map(([code, kind]) => [
    `\`${code}\``,
    kind.category,
    kind.retryable ? "yes" : "no",
    kind.meaning,
    kind.remediation,
  ]);
}

function problemRows(): string[][] {
  return Object.entries<ProblemKind>(problemCodes).map(([code, { status, meaning }]) => [
    String(status),
    `\`${code}\``,
    meaning,
  ]);
}

function operationRows(): string[][] {
  return Object.entries<OperationFailureKind>(operationFailures).map(([code, { retryable, meaning }]) => [
    `\`${code}\``,
    retryable ? "yes" : "no",
    meaning,
  ]);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`;
  return line(head) + line(head.map(() => "---")) + rows.map(line).join("");
}

if (import.meta.main) {
  writeFileSync(fileURLToPath(new URL(`../${ERRORS_PAGE}`, import.meta.url)), errorsPage());
  console.log(`${ERRORS_PAGE}: ${errorsPage().length} characters`);
}
