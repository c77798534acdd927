// Faults of what is accepted, launched and worked on, and of the secrets that are stored with it.

import type { Mutation } from "./mutation.ts";

const launcher = ["src/launch/launcher.test.ts"];
const runs = ["src/launch/runs.test.ts"];
const definitions = ["src/launch/definitions.test.ts"];
const preparations = ["src/launch/preparation-queue.test.ts"];
const operations = ["src/operations/operations.test.ts"];
const operationChange = ["src/operations/operation-change.test.ts"];
const blueprintJobs = ["src/launch/blueprint-jobs.test.ts"];

export const launchMutations: readonly Mutation[] = [
  {
    fault: "a run is launched again by each announcement of it",
    file: "src/launch/preparation-queue.ts",
    search: 'return !launched && status === "pending" && desiredState === "running";',
    replacement: 'return status === "pending" && desiredState === "running";',
    tests: launcher,
  },
  {
    fault: "a run that was paused before its launch is launched",
    file: "src/launch/preparation-queue.ts",
    search: 'return !launched && status === "pending" && desiredState === "running";',
    replacement: "return !launched;",
    tests: launcher,
  },
  {
    fault: "a run that ends while it is asked for something else becomes open again",
    file: "src/launch/run-ends.ts",
    search: "if (run === null || run.launched || isOver(run)) return null;",
    replacement: "if (run === null) return null;",
    tests: ["src/launch/run-ends.test.ts"],
  },
  {
    fault: "what was asked of a launched run is not on disk before the runtime is asked",
    file: "src/launch/runs.ts",
    search: "if (run.launched) {",
    replacement: "if (!run.launched) {",
    tests: runs,
  },
  {
    fault: "a run is accepted for a job that was deleted meanwhile",
    file: "src/launch/runs.ts",
    search: "if (!(await writes.insertRun(run))) throw jobNotFound(jobId);",
    replacement: "await writes.insertRun(run);",
    tests: runs,
  },
  {
    fault: "an ended run is asked to go on",
    file: "src/launch/runs.ts",
    search: 'if (step === "invalid") throw invalidTransition(run, desired);',
    replacement: "",
    tests: runs,
  },
  {
    fault: "a change of a job lands on another revision than the one it was made for",
    file: "src/launch/definitions.ts",
    search: "writes.updateJob(job, before.revision)",
    replacement: "writes.updateJob(job, (await writes.job(before.jobId))?.revision ?? 0)",
    tests: definitions,
  },
  {
    fault: "a job with open runs is deleted without force",
    file: "src/launch/definitions.ts",
    search: "if (job.revision === revision && job.activeRuns > 0) return job.activeRuns;",
    replacement: "",
    tests: definitions,
  },
  {
    fault: "what a deleted job has left stays when the program ends before the removal",
    file: "src/launch/housekeeping.ts",
    search: "this.#parts.definitions.purge();",
    replacement: "",
    tests: ["src/launch/housekeeping.test.ts"],
  },
  {
    fault: "an unforeseen error is tried again for ever",
    file: "src/launch/preparation-queue.ts",
    search: "if (tries < TRIES_MAX) return",
    replacement: "if (tries > 0) return",
    tests: preparations,
  },
  {
    fault: "a run is accepted whose inputs the blueprint's rules refuse",
    file: "src/launch/acceptance.ts",
    search:
      'refuseFailed(check, job.source.kind === "blueprint" ? "/config_overrides" : "/resolved_configuration");',
    replacement: "",
    tests: preparations,
  },
  {
    fault: "a run is accepted while its blueprint is being removed",
    file: "src/launch/acceptance.ts",
    search: "await this.#parts.blueprints.refuseRemoving(blueprintId, writes.blueprints);",
    replacement: "",
    tests: blueprintJobs,
  },
  {
    fault: "a check whose time was over makes a request invalid",
    file: "src/launch/preparation/findings.ts",
    search: "  refuseUnchecked({ errors });\n",
    replacement: "",
    tests: ["src/launch/preparation/findings.test.ts"],
  },
  {
    fault: "the override of a run is stored in plaintext",
    file: "src/launch/acceptance.ts",
    search: 'await this.#parts.secrets.sealGiven(overrides, stored, { at: "/config_overrides", paths }),',
    replacement: '{ kind: "sealed", value: overrides },',
    tests: blueprintJobs,
  },
  {
    fault: "the inputs of a run are stored in plaintext",
    file: "src/launch/acceptance.ts",
    search: "asSealed(await this.#parts.secrets.sealInputs(inputs, { paths }))",
    replacement: "inputs",
    tests: ["test/integration/gateway-configuration.test.ts", "test/integration/planted-secrets.test.ts"],
  },
  {
    fault: "what a manifest names as secret is stored in plaintext",
    file: "src/security/values.ts",
    search: "named: found === null || looksSecret(key)",
    replacement: "named: looksSecret(key)",
    tests: ["src/security/configuration.test.ts"],
  },
  {
    fault: "a configuration is shown with the ciphertexts of its secrets",
    file: "src/security/configuration.ts",
    search: "if (isSealed(value) || isSecret(value, named)) return MASK;",
    replacement: "if (isSecret(value, named)) return MASK;",
    tests: ["src/security/configuration.test.ts"],
  },
  {
    fault: "a line of a secret that has several is written",
    file: "src/execution/output/redaction.ts",
    search: "[secret, ...secret.split(/\\r?\\n/)]",
    replacement: "[secret]",
    tests: ["src/execution/output/redaction.test.ts"],
  },
  {
    fault: "the beginning of a secret at which a text was cut is written",
    file: "src/execution/output/redaction.ts",
    search: "return redacted.slice(0, Math.max(0, redacted.length - longestChars));",
    replacement: "return redacted;",
    tests: ["src/execution/output/redaction.test.ts"],
  },
  {
    fault: "a secret that is the name of a field is written",
    file: "src/execution/output/redaction.ts",
    search: "[text(key), redactJson(item, text)]",
    replacement: "[key, redactJson(item, text)]",
    tests: ["src/execution/output/redaction.test.ts"],
  },
  {
    fault: "the key of a rotated home is removed before all is encrypted with the new one",
    file: "src/security/rotation.ts",
    search: 'await replaceKeys(file, [randomBytes(KEY_BYTES).toString("base64"), ...keys]);',
    replacement: 'await replaceKeys(file, [randomBytes(KEY_BYTES).toString("base64")]);',
    tests: ["src/security/rotation.test.ts"],
  },
  {
    fault: "two operations of one target are open at once",
    file: "src/operations/operations.ts",
    search: "if (open !== null) throw busy(open);",
    replacement: "",
    tests: operations,
  },
  {
    fault: "a start does not take up the operations that were open",
    file: "src/operations/operations.ts",
    search: "for (const operation of await this.#parts.records.openOperations()) this.begin(operation);",
    replacement: "await this.#parts.records.openOperations();",
    tests: operations,
  },
  {
    fault: "the cause of an unforeseen error is told to callers",
    file: "src/operations/operations.ts",
    search: 'return { code: "internal", detail, retryable',
    replacement: 'return { code: "internal", detail: detail + traceOf(error), retryable',
    tests: operations,
  },
  {
    fault: "the percentage of an operation goes back",
    file: "src/operations/operation-change.ts",
    search: "const percent = Math.max(before.percent, percentOf(before.steps, inStep));",
    replacement: "const percent = percentOf(before.steps, inStep);",
    tests: operationChange,
  },
  {
    fault: "an event of an operation has the number of the one before",
    file: "src/operations/operation-change.ts",
    search: "eventSeq: before.eventSeq + 1, updatedAtMs",
    replacement: "eventSeq: before.eventSeq, updatedAtMs",
    tests: operationChange,
  },
  {
    fault: "an operation that has ended is changed",
    file: "src/store/sql/operations.ts",
    search: "if (numUpdatedRows !== 1n)",
    replacement: "if (numUpdatedRows > 1n)",
    tests: ["src/store/sql/operations.test.ts"],
  },
  {
    fault: "old operations leave their events",
    file: "src/store/sql/operations.ts",
    search: 'await db.deleteFrom("operation_events").where("operation_id", "in", ids).execute();',
    replacement: "",
    tests: ["src/store/sql/operations.test.ts", "src/launch/housekeeping.test.ts"],
  },
  {
    fault: "jobs are listed oldest first",
    file: "src/store/sql/definitions.ts",
    search: '.orderBy("d.job_id", "desc")',
    replacement: '.orderBy("d.job_id", "asc")',
    tests: ["src/store/sql/pages.test.ts"],
  },
  {
    fault: "of bundles that were uploaded in one moment the next page leaves some out",
    file: "src/store/sql/bundles.ts",
    search: "(created_at, bundle_id) < (${createdAtMs}, ${bundleId})",
    replacement: "(created_at, bundle_id) < (${createdAtMs}, substr(${bundleId}, 1, 0))",
    tests: ["src/store/sql/definitions.test.ts"],
  },
  {
    fault: "runs of a deleted job are listed",
    file: "src/store/sql/runs.ts",
    search: 'existing(db).where("r.run_id", "<", after)',
    replacement: 'runs(db).where("r.run_id", "<", after)',
    tests: ["src/store/sql/definitions.test.ts"],
  },
];
