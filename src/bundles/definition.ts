// The content of a bundle's JSON files: the manifest with its graph, and the configuration for its workers.

import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Graph } from "../engine/graph.ts";
import { isObject, isStringList, type JsonObject } from "../engine/json.ts";
import { jsonSteps } from "../engine/large-json.ts";
import { limits } from "../engine/limits.ts";
import { type ManifestProblem, manifestSteps } from "../engine/manifest.ts";
import { inSlices } from "../lib/slices.ts";
import { bundleLimits, CONFIG_FILES, MANIFEST_FILE } from "./layout.ts";
import { merged } from "./merge.ts";
import { BundleProblem, inManifest, ProblemList } from "./problem.ts";

export interface Definition {
  readonly graph: Graph;
  readonly manifest: JsonObject;
  readonly manifestJson: string;
  /** config/default.json with config/overwrite.json over it; null when the bundle has neither. */
  readonly configuration: JsonObject | null;
  /** Characters of all that was read; what is kept of it in memory grows with them. */
  readonly jsonChars: number;
}

/**
 * Reads and checks the JSON files of a bundle.
 *
 * @param folder the bundle's folder
 * @throws BundleProblem with everything that is wrong in all of them
 */
export async function readDefinition(folder: string): Promise<Definition> {
  const problems = new ProblemList();
  const found = await readObject(folder, MANIFEST_FILE, problems);
  if (found === null && problems.isEmpty) {
    const message = "the bundle has no manifest.json: it belongs at its top, beside config/ and payloads/";
    problems.add(MANIFEST_FILE, "missing_manifest", message);
  }
  let configuration: JsonObject | null = null;
  let jsonChars = found?.text.length ?? 0;
  for (const name of CONFIG_FILES) {
    const layer = await readObject(folder, name, problems);
    if (layer === null) continue;
    configuration = configuration === null ? layer.value : merged(configuration, layer.value);
    jsonChars += layer.text.length;
  }
  const parsed = found === null ? null : await inSlices(manifestSteps(found.value));
  const wrong: readonly ManifestProblem[] = parsed?.kind === "invalid" ? parsed.problems : [];
  if (!problems.isEmpty) {
    throw new BundleProblem([...problems.all(), ...wrong.map(inManifest)]);
  }
  if (wrong.length > 0) throw BundleProblem.ofManifest(wrong);
  if (found === null || parsed?.kind !== "valid") throw new Error("A manifest without problems has a graph.");
  return { graph: parsed.graph, manifest: found.value, manifestJson: found.text, configuration, jsonChars };
}

/** The extension that opens a job's tool endpoint (spec gateway-api, rule 2). */
export const RESPONSE = "svc.response";
/** The name here of what older packages call collaboration; it opens the endpoint with fewer tools. */
export const COLLABORATION = "svc.collaboration";

/** The features that a package switches on for its jobs, in its manifest or in its configuration. */
export function extensionsOf({ manifest, configuration }: Definition): readonly string[] {
  const { metadata } = manifest;
  const isOld = isObject(metadata) && metadata.collaboration === true;
  return withExtensions([...extensionsIn(manifest), ...(isOld ? [COLLABORATION] : [])], configuration ?? {});
}

/** Those, and what a configuration switches on. */
export function withExtensions(extensions: readonly string[], configuration: JsonObject): readonly string[] {
  const { collaboration } = configuration;
  const isOld = isObject(collaboration) && collaboration.enabled === true;
  const all = new Set([...extensions, ...extensionsIn(configuration), ...(isOld ? [COLLABORATION] : [])]);
  if (all.has(RESPONSE)) all.delete(COLLABORATION);
  return [...all];
}

const extensionsIn = ({ extensions }: JsonObject) => (isStringList(extensions) ? extensions : []);

/** @returns null when the file is not there, or is wrong, which is reported */
async function readObject(
  folder: string,
  name: string,
  problems: ProblemList,
): Promise<{ readonly value: JsonObject; readonly text: string } | null> {
  const bytes = await readBounded(join(folder, name));
  if (bytes === null) return null;
  if (bytes === "too_large") {
    problems.add(name, "too_large", `${name} is larger than ${bundleLimits.jsonBytesMax} bytes`);
    return null;
  }
  const text = decode(bytes);
  if (text === null) {
    problems.add(name, "invalid_utf8", `${name} is not UTF-8 text`);
    return null;
  }
  const parsed = await inSlices(jsonSteps(text, limits.jsonDepthMax));
  if (parsed === null) {
    problems.add(
      name,
      "invalid_json",
      `${name} is no JSON, or nests deeper than ${limits.jsonDepthMax}${whyNot(text)}`,
    );
  } else if (!isObject(parsed.value)) problems.add(name, "wrong_type", `${name} must hold a JSON object`);
  else return { value: parsed.value, text };
  return null;
}

async function readBounded(file: string): Promise<Uint8Array | "too_large" | null> {
  try {
    const { size } = await stat(file);
    return size > bundleLimits.jsonBytesMax ? "too_large" : await readFile(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EISDIR") return null;
    throw error;
  }
}

/** A byte order mark at the start is left out. */
function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Where JSON.parse failed, for the message. */
function whyNot(text: string): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return ` (${(error as Error).message})`;
  }
}

export interface DefinitionCacheOptions {
  readonly read: (fingerprint: string) => Promise<Definition>;
  readonly entriesMax: number;
  /** Of JSON text; in memory a definition takes several bytes for each. */
  readonly charsMax: number;
}

interface Entry {
  readonly definition: Promise<Definition>;
  /** 0 until it has been read. */
  chars: number;
}

/**
 * A cache of snapshots' definitions: every run of a job needs the same few.
 *
 * - Snapshots never change, so a definition is read once for as long as it is kept.
 * - What is kept is bounded in number and in characters; the least recently used goes first, the last one asked for
 *   stays, whatever its size.
 * - Concurrent callers share one read. A failure is not cached.
 */
export class DefinitionCache {
  readonly #options: DefinitionCacheOptions;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  #chars = 0;

  constructor(options: DefinitionCacheOptions) {
    this.#options = options;
  }

  /** @returns the same object as long as it is cached; it must not be modified */
  get(fingerprint: string): Promise<Definition> {
    const known = this.#entries.get(fingerprint);
    if (known !== undefined) {
      this.#entries.delete(fingerprint);
      this.#entries.set(fingerprint, known);
      return known.definition;
    }
    const entry: Entry = { definition: this.#options.read(fingerprint), chars: 0 };
    this.#entries.set(fingerprint, entry);
    this.#evict();
    entry.definition.then(
      ({ jsonChars }) => {
        if (this.#entries.get(fingerprint) !== entry) return;
        entry.chars = jsonChars;
        this.#chars += jsonChars;
        this.#evict();
      },
      () => {
        if (this.#entries.get(fingerprint) === entry) this.#entries.delete(fingerprint);
      },
    );
    return entry.definition;
  }

  #evict(): void {
    const { entriesMax, charsMax } = this.#options;
    for (const [fingerprint, { chars }] of this.#entries) {
      const isRoomy = this.#entries.size <= entriesMax && this.#chars <= charsMax;
      if (isRoomy || this.#entries.size === 1) return;
      this.#entries.delete(fingerprint);
      this.#chars -= chars;
    }
  }
}
