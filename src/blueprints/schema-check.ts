// JSON Schemas that packages bring along: whether one can be used. They are read as draft 2020-12, whatever draft they
// name, by this check as by the preparation of launches.
//
// J1. A schema names nothing outside itself: a reference that leads elsewhere is a mistake of the schema, and nothing
//     is ever fetched.
// J2. The library is loaded when the first schema is checked, and a schema is checked once.

import { createRequire } from "node:module";
import type { Ajv, Options } from "ajv";
import type { JsonObject } from "../engine/json.ts";
import { MachineBusy, runWithTimeout } from "../lib/async.ts";

/** Characters of a schema as JSON. Compiling one holds the thread, and takes more than linear time when it has many patterns. */
const SCHEMA_CHARS_MAX = 64 * 1024;
const REASON_CHARS_MAX = 500;
const RUN_CPU_MS_MAX = 500;

const checked = new WeakMap<JsonObject, string | null>();

/** Says why a schema cannot be used, continuing a sentence that begins with its name; null when it can. */
export function schemaProblem(schema: JsonObject): string | null {
  const known = checked.get(schema);
  if (known !== undefined) return known;
  const said = check(schema);
  checked.set(schema, said);
  return said;
}

function check(schema: JsonObject): string | null {
  const chars = JSON.stringify(schema).length;
  if (chars > SCHEMA_CHARS_MAX) return `has ${chars} characters: at most ${SCHEMA_CHARS_MAX} are allowed`;
  if (schema.$async !== undefined) return "has $async, which no JSON Schema has: leave it out";
  const { $schema: _draft, $id: _id, ...rest } = schema;
  // Without an id, the library does not know what "#" refers to.
  const named = { ...rest, $id: "schema" };
  const ajv = compiler();
  try {
    const validate = ajv.compile(named);
    // V8 reads all of the code only when it is run, and finds then what is nested too deep for it.
    // What takes too long is no mistake yet: each launch is told by itself.
    runWithTimeout(RUN_CPU_MS_MAX, () => void validate({}));
    return null;
  } catch (error) {
    if (error instanceof MachineBusy) return null;
    if (error instanceof RangeError)
      return "has too many alternatives, or refers to itself without end: make it simpler";
    const reason = error instanceof Error ? error.message : String(error);
    return `is no JSON Schema that can be used: ${reason.slice(0, REASON_CHARS_MAX)}`;
  } finally {
    ajv.removeSchema(named);
  }
}

const options: Options = {
  strict: false,
  allErrors: true,
  logger: false,
  addUsedSchema: false,
  // What is compiled here is run once.
  code: { optimize: false },
};
let loaded: Ajv | null = null;

function compiler(): Ajv {
  if (loaded !== null) return loaded;
  const load = createRequire(import.meta.url);
  loaded = new (load("ajv/dist/2020.js") as typeof import("ajv/dist/2020.js")).Ajv2020(options);
  return loaded;
}
