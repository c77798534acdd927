// What is wrong with a manifest, collected so that a person sees everything at once.
//
// - At most PROBLEMS_MAX problems are kept; one more line tells how many were left out.
// - A message stands by itself: it names the place, what is wrong, and what is allowed.

export interface ManifestProblem {
  /** JSON Pointer into the manifest, such as `/nodes/0/node_id`; empty for the whole. */
  readonly path: string;
  /** Short and stable: missing, wrong_type, out_of_range, unknown_value, … */
  readonly code: string;
  readonly message: string;
}

const PROBLEMS_MAX = 100;
const QUOTED_CHARS_MAX = 80;

export class Problems {
  readonly #kept: ManifestProblem[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /**
   * Adds a problem.
   *
   * @param path names and indexes from the manifest's root to the value
   * @param text continues the sentence that begins with the value's name, without a full stop
   */
  add(path: readonly (string | number)[], code: string, text: string): void {
    this.#count++;
    if (this.#kept.length >= PROBLEMS_MAX) return;
    this.#kept.push({ path: pointer(path), code, message: `${placeName(path)} ${text}` });
  }

  /** All problems in the order in which they were found. */
  list(): readonly ManifestProblem[] {
    const more = this.#count - this.#kept.length;
    if (more === 0) return this.#kept;
    return [...this.#kept, { path: "", code: "more_problems", message: `and ${more} more` }];
  }
}

function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function placeName(path: readonly (string | number)[]): string {
  if (path.length === 0) return "the manifest";
  let name = "";
  for (const part of path) {
    if (typeof part === "number") name += `[${part}]`;
    else if (/^\w+$/.test(part)) name += name === "" ? part : `.${part}`;
    else name += `[${quoted(part)}]`;
  }
  return name;
}

/** Shows a value from outside in a message: as JSON, and short. */
export function quoted(text: string): string {
  const short = text.length <= QUOTED_CHARS_MAX ? text : `${text.slice(0, QUOTED_CHARS_MAX - 1)}…`;
  return JSON.stringify(short);
}
