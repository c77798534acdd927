// What is wrong with a bundle, collected so that a person sees everything at once.

import { type ManifestProblem, manifestProblemsText } from "../engine/manifest.ts";

export interface BundleProblemEntry {
  /** JSON Pointer into the manifest (`/nodes/0/node_id`), or `/` and the name of a file; empty for the whole. */
  readonly path: string;
  readonly code: string;
  /** Stands by itself: what is wrong, where, and what is allowed. */
  readonly message: string;
}

/** The bundle cannot be taken as it is; nothing was changed. Whoever made the bundle can mend it. */
export class BundleProblem extends Error {
  override readonly name = "BundleProblem";
  readonly problems: readonly BundleProblemEntry[];

  constructor(problems: readonly BundleProblemEntry[], heading = "Invalid bundle") {
    super(`${heading}: ${problems.map((problem) => problem.message).join("; ")}`);
    this.problems = problems;
  }

  /** A bundle whose files are fine and whose manifest is not. */
  static ofManifest(problems: readonly ManifestProblem[]): BundleProblem {
    return new BundleProblem(problems, manifestProblemsText([]).slice(0, -2));
  }

  static of(path: string, code: string, message: string): BundleProblem {
    return new BundleProblem([{ path, code, message }]);
  }
}

const PROBLEMS_MAX = 100;
const SHOWN_CHARS_MAX = 200;

/** Collects problems; keeps the first 100 and counts the rest. */
export class ProblemList {
  readonly #kept: BundleProblemEntry[] = [];
  #left = 0;

  /** @param file name inside the bundle; empty for the whole */
  add(file: string, code: string, message: string): void {
    if (this.#kept.length >= PROBLEMS_MAX) this.#left++;
    else this.#kept.push({ path: file === "" ? "" : `/${shortened(file)}`, code, message });
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
