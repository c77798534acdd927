// Makes docs/errors.md from the catalogue of failures and that of problems: `npm run docs`.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { makeFailure } from "../src/engine/failure.ts";
import { type FailureKind, failureCatalogue } from "../src/engine/failure-catalogue.ts";
import { type ProblemKind, problemCodes } from "../src/http/core/problem-codes.ts";

/** Where the page is, inside the project. */
export const ERRORS_PAGE = "docs/errors.md";

/** What the first word of a code is about. */
const subjects: Readonly<Record<string, string>> = {
  executor: "Commands",
  sensor: "Sensors",
  module: "Modules",
  message: "Messages",
  configuration: "Configuration",
  resource: "Slots, processes, memory",
  job: "The whole run",
  manifest: "The manifest",
  inputs: "The inputs",
  blueprint: "Blueprints",
  preparation: "The preparation of a launch",
  service: "Services",
  runtime: "The runtime",
};

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

Two kinds of errors have codes. A **failure** says why a run, or one attempt of a command, did not work. A **problem** says why the
gateway refused a request. A code never changes its meaning, so programs may compare it; the sentences beside it are for people and
may change. This page is made from the program's own catalogues (\`npm run docs\`).

## Failures

A failure is an object of the schema \`svc.error.v1\`. A failed run has it as \`failure\`, and the events that report it
(\`sandbox_job_failed\`, \`agent_failed\`, \`job_failed\`) have it as \`error\`:

\`\`\`json
${JSON.stringify(example, null, 2)}
\`\`\`

- \`desc\` is the first line of \`details.message\`, at most 160 characters. The message has at most 2 KiB, \`stderr_tail\` is the last
  4 KiB of what the command wrote to stderr, and the whole is never larger than 16 KiB. Secrets are replaced by \`[redacted]\`.
- \`details.category\` says whose matter it is: \`user_code\` (the bundle's), \`timeout\`, \`resource\` (slots, processes, memory),
  \`infrastructure\` (the runtime's disk or process), \`validation\` (what was sent), \`dependency\` (something that is not there).
- \`details.retryable\` says whether the same attempt may succeed when it is made again. Such an attempt is made again up to the node's
  \`max_attempts\`; any other fails for good at once.
- \`event_id\` is the number of the event that reported it first, as a string, \`span_id\` the span of the run, agent or attempt in the
  timeline, and \`links\` are paths of the gateway where to read on, each with what it leads to as \`rel\`. Details leave out what does not
  apply.

${failureSections()}
## Problems

Every error of the gateway is \`application/problem+json\` ([example](gateway-api.md#errors)). \`detail\` says more than this table.

${table(["status", "code", "what it means, and what to do"], problemRows())}`;
}

function failureSections(): string {
  const entries = Object.entries<FailureKind>(failureCatalogue);
  const bySubject = Map.groupBy(entries, ([code]) => code.split(".", 1)[0] ?? "");
  return [...bySubject]
    .map(([subject, kinds]) => {
      const title = subjects[subject];
      if (title === undefined) throw new Error(`docs/generate.ts has no title for the codes ${subject}.*`);
      const rows = kinds.map(([code, { category, retryable, meaning, remediation }]) => [
        `\`${code}\``,
        category,
        retryable ? "yes" : "no",
        meaning,
        remediation,
      ]);
      return `### ${title}\n\n${table(["code", "category", "retryable", "what has happened", "what to do"], rows)}`;
    })
    .join("\n");
}

function problemRows(): string[][] {
  return Object.entries<ProblemKind>(problemCodes).map(([code, { status, meaning }]) => [
    String(status),
    `\`${code}\``,
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
