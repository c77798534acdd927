// JSON Schemas that packages bring along: whether one can be used, and asking it. They are read as draft 2020-12, whatever
// draft they name.
//
// - A schema names nothing outside itself: a reference that leads elsewhere is a mistake of the schema, and nothing
//   is ever fetched.
// - The library is loaded for the first schema. A schema is compiled once, and kept as long as its package's description.
// - However large the values and whatever the schema, one question uses BUDGET_MS of CPU time at most; all of its
//   patterns together have the same bound as those of rules.

import { createRequire } from "node:module";
import type { Ajv, Options, ValidateFunction } from "ajv";
import type { JsonObject } from "../engine/json.ts";
import { MachineBusy, runWithTimeout } from "../lib/async.ts";
import { PatternBudget } from "./patterns.ts";

/** Characters of a schema as JSON. Compiling one holds the thread, and takes more than linear time when it has many patterns. */
const SCHEMA_CHARS_MAX = 64 * 1024;
const REASON_CHARS_MAX = 500;
/** A value as large as a request may be takes a good tenth of it. */
const BUDGET_MS = 500;

/** A schema that was compiled, or why it cannot be used. */
type Compiled = ValidateFunction | { readonly problem: string };

const compiled = new WeakMap<JsonObject, Compiled>();
/** Of the schema that is being asked: asking is synchronous, so there is one at a time. Null while none is. */
let patterns: PatternBudget | null = null;
let loaded: Ajv | null = null;

/** Tells why a schema cannot be used, continuing a sentence that begins with its name; null when it can. */
export function schemaProblem(schema: JsonObject): string | null {
  const found = compile(schema);
  return typeof found === "function" ? null : found.problem;
}

/**
 * Asks a schema that can be used.
 *
 * @param ask synchronous; begins again when it is called again
 * @returns false when there was not enough time
 * @throws RangeError when the schema refers to itself without end for these values; MachineBusy
 */
export function askSchema(schema: JsonObject, ask: (validate: ValidateFunction) => void): boolean {
  const validate = compile(schema);
  if (typeof validate !== "function") throw new Error(`The schema ${validate.problem}.`);
  try {
    return asked(() => ask(validate));
  } finally {
    // With all the mistakes of a large value.
    validate.errors = null;
  }
}

function asked(ask: () => void): boolean {
  try {
    return runWithTimeout(BUDGET_MS, () => {
      patterns = new PatternBudget();
      ask();
    });
  } finally {
    patterns = null;
  }
}

function compile(schema: JsonObject): Compiled {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const made = compileNew(schema);
  compiled.set(schema, made);
  return made;
}

function compileNew(schema: JsonObject): Compiled {
  const chars = JSON.stringify(schema).length;
  if (chars > SCHEMA_CHARS_MAX) {
    return { problem: `has ${chars} characters: at most ${SCHEMA_CHARS_MAX} are allowed` };
  }
  if (schema.$async !== undefined) return { problem: "has $async, which no JSON Schema has: leave it out" };
  const { $schema: _draft, $id: _id, ...rest } = schema;
  // Without an id, the library does not know what "#" refers to.
  const named = { ...rest, $id: "schema" };
  const ajv = library();
  try {
    const validate = ajv.compile(named);
    // V8 reads all of the code only when it is run, and finds then what is nested too deep for it.
    // What takes too long is no mistake yet: each launch is told by itself.
    tryOnce(validate);
    return validate;
  } catch (error) {
    if (error instanceof RangeError)
      return { problem: "has too many alternatives, or refers to itself without end: make it simpler" };
    const reason = error instanceof Error ? error.message : String(error);
    return { problem: `is no JSON Schema that can be used: ${reason.slice(0, REASON_CHARS_MAX)}` };
  } finally {
    ajv.removeSchema(named);
  }
}

function tryOnce(validate: ValidateFunction): void {
  try {
    asked(() => void validate({}));
  } catch (error) {
    if (!(error instanceof MachineBusy)) throw error;
  }
}

const options: Options = {
  strict: false,
  allErrors: true,
  logger: false,
  addUsedSchema: false,
  code: {
    // Making the code shorter takes longer than it ever saves: seconds for a `oneOf` of a thousand constants.
    optimize: false,
    regExp: Object.assign(boundedPattern, { code: "(for schemas that are compiled to files)" }),
  },
};

/** @throws SyntaxError for what is no regular expression */
function boundedPattern(pattern: string) {
  const own = new RegExp(pattern, "u");
  return {
    // Outside of a question the library checks the schema itself, by patterns of its own that are harmless.
    test: (text: string) =>
      patterns === null ? own.test(text) : patterns.judge(pattern, text) === "matches",
    // The library compares patterns by this.
    toString: () => pattern,
  };
}

function library(): Ajv {
  const load = createRequire(import.meta.url);
  loaded ??= new (load("ajv/dist/2020.js") as typeof import("ajv/dist/2020.js")).Ajv2020(options);
  return loaded;
}
