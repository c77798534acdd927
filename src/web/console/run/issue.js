// @ts-check
// A failure as the text of an issue, in Markdown: what a maintainer needs who has no access to the gateway. Secrets are masked in
// what the gateway shows.

import { clean } from "../../dashboard/format.js";

const STDERR_LINES = 30;
const INPUT_CHARS_MAX = 4_000;

/**
 * @param {{ run: any, failure: any, attempts: readonly any[], history: string, input: unknown, job: any, bundle: any, version: string }} given
 *   what could not be read is null; history: how often it has failed like this, in words
 */
export function issueOf({ run, failure, attempts, history, input, job, bundle, version }) {
  const details = failure.details ?? {};
  const source = job?.source ?? {};
  const facts = [
    ["Run", run.run_id],
    ["Job", [run.job_name, run.job_id].filter(Boolean).join(", ")],
    ["Blueprint", source.blueprint_id ?? run.blueprint_id],
    ["Bundle", source.bundle_id],
    ["Digest of the bundle (SHA-256)", bundle?.fingerprint],
    ["Graph", job?.graph_id],
    ["Revision of the job", job?.revision],
    ["Troupe", version],
    ["Code", failure.code],
    ["Agent", details.agent_id],
    ["Attempt", [details.attempt, details.max_attempts].filter(Number.isInteger).join(" of ")],
    ["Exit code", details.exit_code],
    ["Signal", details.signal],
    ["When", failure.occurred_at],
    ["Trace", failure.trace_id ?? run.trace_id],
    ["Trigger", run.trigger.kind],
    ["History", history],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "");
  const stderr = lines(details.stderr_tail).slice(-STDERR_LINES).join("\n");
  const tried = attempts.map(
    ({ attempt, at, duration, code, message }) =>
      `${attempt}. ${[at, duration, code, message].filter(Boolean).join(" · ")}`,
  );
  return [
    `### ${inline(failure.desc || details.message || failure.code)}`,
    facts.map(([name, value]) => `- ${name}: ${span(String(value))}`).join("\n"),
    section("What the failure says", String(details.message ?? "")),
    section("The end of stderr", stderr),
    section("Attempts", tried.join("\n")),
    section(
      "The message that it failed at",
      start(input === undefined ? "" : JSON.stringify(input, null, 2)),
    ),
    section("Inputs of the run", start(JSON.stringify(run.inputs, null, 2))),
  ]
    .filter(Boolean)
    .join("\n\n")
    .concat("\n");
}

/** @param {unknown} text */
const lines = (text) => (typeof text === "string" ? text.trimEnd().split("\n") : []);

/** @param {string} text */
const start = (text) => (text.length <= INPUT_CHARS_MAX ? text : `${text.slice(0, INPUT_CHARS_MAX)}…`);

/** On one line, without what Markdown or HTML would act on. @param {unknown} text */
const inline = (text) =>
  clean(String(text))
    .replace(/\s+/g, " ")
    .replace(/[\\`*_[\]<>#|]/g, "\\$&");

/** @param {string} text */
function span(text) {
  const one = clean(text).replace(/\s+/g, " ");
  const fence = fenceFor(one, 1);
  return `${fence}${fence === "`" ? one : ` ${one} `}${fence}`;
}

/** @param {string} title @param {string} text @returns {string} nothing for nothing */
function section(title, text) {
  if (text.trim() === "") return "";
  const fence = fenceFor(text, 3);
  return `#### ${title}\n\n${fence}\n${lines(text).map(clean).join("\n")}\n${fence}`;
}

/** Longer than any of the text's own. @param {string} text @param {number} least */
const fenceFor = (text, least) =>
  "`".repeat(Math.max(least, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
