// What `troupe run` submits: a folder that is registered first, or a manifest as it is, with inputs and
// configuration from files.

import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { describePackage } from "../blueprints/describe-package.ts";
import type { BundleProblemEntry } from "../bundles/problem.ts";
import { isObject, isStringList, type JsonObject, type JsonValue, parseJson } from "../engine/json.ts";
import { limits } from "../engine/limits.ts";
import type { RuntimeClient } from "./client.ts";
import { type Call, UsageError } from "./command.ts";
import { noteWarnings } from "./validate.ts";

const STDIN = 0;

export type Submission =
  | {
      readonly kind: "folder";
      readonly path: string;
      readonly inputs: JsonObject | undefined;
      readonly config: JsonObject | undefined;
    }
  | { readonly kind: "manifest"; readonly manifest: JsonObject; readonly hint: string | null };

/**
 * Reads everything that `troupe run` needs from disk, before anything is started.
 *
 * @throws UsageError that names the file and what is wrong with it
 */
export function readSubmission(call: Call): Submission {
  const target = resolve(call.words[0] ?? "");
  const inputs = readObject(call, "input");
  const config = readObject(call, "config");
  const found = statSync(target, { throwIfNoEntry: false });
  if (found === undefined)
    throw new UsageError(`${call.words[0]} does not exist; give a bundle folder or a manifest.`);
  if (found.isDirectory()) return { kind: "folder", path: realpathSync(target), inputs, config };
  if (config !== undefined) {
    throw new UsageError("--config belongs to a bundle folder; a manifest alone has no configuration.");
  }
  const manifest = readJsonFile(target);
  if (!isObject(manifest)) throw new UsageError(`${target} is not a manifest: it holds no JSON object.`);
  const folder = dirname(target);
  const hint =
    basename(target) === "manifest.json" && existsSync(join(folder, "payloads"))
      ? `Only the manifest is submitted, without its payloads; \`troupe run ${folder}\` brings them.`
      : null;
  return { kind: "manifest", manifest: inputs === undefined ? manifest : withInputs(manifest, inputs), hint };
}

/** Sends it. A folder is registered by path, so the runtime must see the same disk. */
export async function submit(
  call: Call,
  client: RuntimeClient,
  submission: Submission,
): Promise<{ readonly jobId: string; readonly runId: string | null }> {
  if (submission.kind === "manifest") {
    noteWarnings(call, warningsOf(submission.manifest));
    return client.submit(submission.manifest);
  }
  const { path, inputs, config } = submission;
  const bundle = await client.registerFolder(path);
  noteWarnings(call, bundle.warnings ?? []);
  return client.submit({
    bundle_id: bundle.bundle_id,
    ...(inputs !== undefined && { inputs }),
    ...(config !== undefined && { config }),
  });
}

/** What is odd in a manifest alone; what is wrong with it, the runtime says. */
function warningsOf(manifest: JsonObject): readonly BundleProblemEntry[] {
  return describePackage({ manifest, configuration: null, graph: null }, null).warnings;
}

/** Reads a JSON file of the user; `-` is stdin. */
export function readJsonFile(path: string): JsonValue {
  const shown = path === "-" ? "stdin" : path;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path === "-" ? STDIN : path));
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(`${shown} is not UTF-8 text.`);
    throw new UsageError(
      `${shown} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  const parsed = parseJson(text, limits.jsonDepthMax);
  if (parsed === null) throw new UsageError(`${shown} is no JSON: ${whyNot(text)}`);
  return parsed.value;
}

function whyNot(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return `it nests deeper than ${limits.jsonDepthMax} levels.`;
}

/** The object in the file that an option names. */
export function readObject(call: Call, option: string): JsonObject | undefined {
  const file = call.text(option);
  if (file === null) return undefined;
  const value = readJsonFile(file);
  if (!isObject(value)) throw new UsageError(`--${option}: ${file} holds no JSON object.`);
  return value;
}

/**
 * The inputs in place of the manifest's own: one body for every entrypoint, or bodies for some of them by name
 * (`{"$entrypoints": {"id": [bodies]}}`; the others keep theirs).
 *
 * @throws UsageError for inputs that would reach nobody
 */
export function withInputs(manifest: JsonObject, inputs: JsonObject): JsonObject {
  if (Object.keys(inputs).length === 0) return manifest;
  const own = isObject(manifest.initial_inputs) ? manifest.initial_inputs : {};
  const { $entrypoints: addressed, ...beside } = inputs;
  if (addressed !== undefined) {
    if (!isObject(addressed))
      throw new UsageError("$entrypoints must be an object of entrypoint to list of bodies.");
    const [lost] = Object.keys(beside);
    if (lost !== undefined)
      throw new UsageError(`The inputs have "${lost}" beside $entrypoints, which would reach nobody.`);
    return { ...manifest, initial_inputs: { ...own, ...addressed } };
  }
  const entrypoints = isStringList(manifest.entrypoints) ? manifest.entrypoints : [];
  return { ...manifest, initial_inputs: Object.fromEntries(entrypoints.map((id) => [id, [inputs]])) };
}
