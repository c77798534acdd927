// The catalogue against the contract: codes and statuses here are what clients were promised.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { type ProblemCode, problemCodes, titleOf } from "./problem-codes.ts";

const promised: Readonly<Record<number, readonly string[]>> = {
  400: ["invalid_page_token", "invalid_parameter", "malformed_json", "malformed_request"],
  401: ["invalid_signature", "unauthorized"],
  403: ["forbidden"],
  404: [
    "artifact_not_found",
    "blueprint_not_found",
    "bundle_not_found",
    "dead_letter_not_found",
    "deployment_not_found",
    "event_not_found",
    "human_request_not_found",
    "job_not_found",
    "model_not_found",
    "node_not_found",
    "not_found",
    "operation_not_found",
    "run_not_found",
    "schedule_not_found",
    "service_not_found",
    "session_not_found",
    "volume_not_found",
  ],
  405: ["method_not_allowed"],
  408: ["request_timeout"],
  409: [
    "active_runs",
    "already_answered",
    "already_retried",
    "blueprint_broken",
    "blueprint_busy",
    "blueprint_in_use",
    "bundle_in_use",
    "conflict",
    "human_request_timed_out",
    "idempotency_key_reused",
    "invalid_transition",
    "last_node",
    "model_busy",
    "model_in_use",
    "no_free_port",
    "node_busy",
    "not_clustered",
    "requirements_not_met",
    "resource_unsatisfiable",
    "run_ended",
    "volume_in_use",
  ],
  412: ["precondition_failed"],
  413: ["payload_too_large"],
  414: ["uri_too_long"],
  415: ["unsupported_media_type"],
  416: ["range_not_satisfiable"],
  422: ["validation_failed"],
  428: ["precondition_required"],
  429: ["rate_limited"],
  431: ["headers_too_large"],
  500: ["internal"],
  503: ["service_not_passing", "unavailable"],
  507: ["insufficient_storage"],
};

test("every promised code exists with its status, and no other", () => {
  const codes = Object.keys(problemCodes) as ProblemCode[];
  const found = Object.groupBy(codes, (code) => problemCodes[code].status);
  const sorted = Object.entries(found).map(([status, list = []]) => [status, list.toSorted()]);
  assert.deepEqual(Object.fromEntries(sorted), promised);
});

test("every code says what happened and what to do next, in sentences", () => {
  for (const [code, { meaning }] of Object.entries(problemCodes)) {
    assert.match(titleOf(code as ProblemCode), /^[A-Z][A-Za-z ]+$/, code);
    assert.match(meaning, /^[A-Z].{20,}\.$/s, code);
  }
});

test("every code is answered somewhere in the program, and met by a test of it", () => {
  const root = resolve(import.meta.dirname, "../../..");
  const textOf = (files: readonly string[]) =>
    files.map((file) => readFileSync(join(root, file), "utf8")).join();
  const isTest = (file: string) => /test(-[a-z]+)?\.ts$/.test(file);
  const own = globSync("src/{http,launch,runs}/**/*.ts", { cwd: root }).filter(
    (file) => !isTest(file) && !/problem-codes\.ts$|\/schemas\//.test(file),
  );
  const tests = globSync(["src/{http,launch,runs}/**/*.test.ts", "test/{gateway,integration}/*.test.ts"], {
    cwd: root,
  }).filter((file) => !file.endsWith("problem-codes.test.ts"));
  const [program, tested] = [textOf(own), textOf(tests)];
  const missing = Object.keys(problemCodes).filter(
    (code) => !program.includes(`"${code}"`) || !tested.includes(`"${code}"`),
  );
  assert.deepEqual(missing, []);
});
