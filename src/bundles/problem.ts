// What is wrong with a bundle, collected so that a person sees everything at once.

import { type ManifestProblem, manifestProblemsText } from "../engine/manifest.ts";
import { MANIFEST_FILE } from "./layout.ts";

export interface BundleProblemEntry {
  /** JSON Pointer into the manifest (`/nodes/0/node_id`), or `/` and the name of a file; empty for the whole. */
  readonly path: string;
  readonly code: string;
  /** A full sentence: what is wrong, where, and what is allowed. */
  readonly message: string;
}

/** The bundle is invalid and its author can fix it; nothing was changed. */
export class BundleProblem extends Error {
  override readonly name = "BundleProblem";
  readonly problems: readonly BundleProblemEntry[];

  constructor(problems: readonly BundleProblemEntry[], text = `Invalid bundle: ${messagesOf(problems)}`) {
    super(text);
    this.problems = problems;
  }

  /** A bundle whose files are fine and whose manifest is not; its text is that of a submission's refusal. */
  static ofManifest(problems: readonly ManifestProblem[]): BundleProblem {
    return new BundleProblem(problems.map(inManifest), manifestProblemsText(problems));
  }

  static of(path: string, code: string, message: string): BundleProblem {
    return new BundleProblem([{ path, code, message }]);
  }
}

/** The quota of all bundles together is used up (SVC_BUNDLES_MAX_BYTES). Nothing was changed. */
export class BundlesFull extends Error {
  override readonly name = "BundlesFull";

  constructor(room: { readonly bytes: number; readonly usedBytes: number; readonly bytesMax: number }) {
    super(
      `The bundles have ${room.usedBytes} bytes together, and one of ${room.bytes} more is over SVC_BUNDLES_MAX_BYTES (${room.bytesMax}). Delete bundles that no job uses, or raise the limit.`,
    );
  }
}

/** A problem of the manifest as one of the bundle: the path points into the manifest, the message names the file. */
export function inManifest({ path, code, message }: ManifestProblem): BundleProblemEntry {
  return { path, code, message: `${MANIFEST_FILE}: ${message}` };
}

/** All messages in one line. */
export function messagesOf(problems: readonly BundleProblemEntry[]): string {
  return problems.map((problem) => problem.message).join("; ");
}

/** The upload was cut off at SVC_BUNDLE_MAX_BYTES; its content is unknown. */
export function isUploadTooLarge({ problems }: BundleProblem): boolean {
  return problems.some(({ code }) => code === "upload_too_large");
}

const PROBLEMS_MAX = 100;
const SHOWN_CHARS_MAX = 200;

/** Collects problems; keeps the first 100 and counts the rest. */
export class ProblemList {
  readonly #kept: BundleProblemEntry[] = [];
  #left = 0;

  /** @param file name inside the bundle; empty for the whole */
  add(file: string, code: string, message: string): void {
    this.addEntry({ path: file === "" ? "" : `/${shortened(file)}`, code, message });
  }

  addEntry(problem: BundleProblemEntry): void {
    if (this.#kept.length >= PROBLEMS_MAX) this.#left++;
    else this.#kept.push(problem);
  }

  get isEmpty(): boolean {
    return this.#kept.length === 0;
  }

  all(): readonly BundleProblemEntry[] {
    if (this.#left === 0) return this.#kept;
    return [...this.#kept, { path: "", code: "more_problems", message: `and ${this.#left} more` }];
  }
}

/** A file's name for a message: quoted, so that odd characters are seen, and short. */
export function shown(file: string): string {
  return JSON.stringify(shortened(file));
}

function shortened(text: string): string {
  return text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX - 1)}…`;
}
