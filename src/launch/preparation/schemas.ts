// A package's own JSON Schemas over a launch: `config_schema` over the resolved configuration, `input_schema` over the
// inputs.
//
// S1. Every mistake at once, as a path and a sentence; a bounded number of them.
// S2. A schema is compiled when it is first asked, and kept as long as its package's description.
// S3. However large the values and whatever the schema, one question uses BUDGET_MS of CPU time at most; all of its
//     patterns together have the same bound as those of rules.

import type { Ajv, ErrorObject, Options, ValidateFunction } from "ajv";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { runWithTimeout } from "../../lib/async.ts";
import { pointer } from "../../lib/text.ts";
import type { LaunchProblem } from "./findings.ts";
import { PatternBudget } from "./patterns.ts";

const MISTAKES_MAX = 100;
const LISTED_MAX = 20;
/** A value as large as a request may be takes a good tenth of it. */
const BUDGET_MS = 500;

/** Of the schema that is being asked: asking is synchronous, so there is one at a time. */
let patterns = new PatternBudget();

const compiled = new WeakMap<JsonObject, ValidateFunction>();
let loaded: Promise<Ajv> | null = null;

const options: Options = {
  strict: false,
  allErrors: true,
  logger: false,
  addUsedSchema: false,
  // The package's description has seen to that.
  validateSchema: false,
  // Making the code shorter takes longer than it ever saves: seconds for a `oneOf` of a thousand constants. And what the
  // check could compile is compiled here in the same way, with the same depth of calls.
  code: {
    optimize: false,
    regExp: Object.assign(boundedPattern, { code: "(for schemas that are compiled to files)" }),
  },
};

function boundedPattern(pattern: string) {
  return {
    test: (text: string) => patterns.judge(pattern, text) === "matches",
    // The library compares patterns by this.
    toString: () => pattern,
  };
}

/** @param schema one that src/blueprints/schema-check.ts has found usable */
async function compile(schema: JsonObject): Promise<ValidateFunction> {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  // The library takes a while to load, and few packages have schemas.
  loaded ??= import("ajv/dist/2020.js").then(({ Ajv2020 }) => new Ajv2020(options));
  const ajv = await loaded;
  const { $schema: _draft, $id: _id, ...rest } = schema;
  // Without an id, the library does not know what "#" refers to.
  const named = { ...rest, $id: "schema" };
  const validate = ajv.compile(named);
  ajv.removeSchema(named);
  compiled.set(schema, validate);
  return validate;
}

type Place = Pick<LaunchProblem, "part" | "path">;

interface PlacedValue {
  readonly value: JsonValue;
  readonly place: Place;
}

/**
 * Holds a value against a schema.
 *
 * @param place where the value stands: the part, and its JSON Pointer there
 */
export function schemaProblems(
  schema: JsonObject,
  value: JsonValue,
  place: Place,
): Promise<readonly LaunchProblem[]> {
  return problemsOf(schema, () => [{ value, place }], place);
}

/** @param whole where all of the values stand */
async function problemsOf(
  schema: JsonObject,
  values: () => Iterable<PlacedValue>,
  whole: Place,
): Promise<readonly LaunchProblem[]> {
  const validate = await compile(schema);
  const problems: LaunchProblem[] = [];
  const judge = () => {
    patterns = new PatternBudget();
    problems.length = 0;
    for (const { value, place } of values()) {
      if (validate(value)) continue;
      const mistakes = (validate.errors ?? []).filter(({ keyword }) => keyword !== "if");
      problems.push(...mistakes.slice(0, MISTAKES_MAX).map((error) => problemOf(error, place)));
      if (problems.length >= MISTAKES_MAX) return;
    }
  };
  const unjudged = (code: string, message: string) => [...problems, { ...whole, code, message }];
  try {
    if (runWithTimeout(BUDGET_MS, judge)) return problems.slice(0, MISTAKES_MAX);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const said = "refers to itself without end, or is nested too deep: fix the schema";
    return unjudged("endless_schema", `the package's schema of the ${whole.part} ${said}`);
  } finally {
    // With all the mistakes of a large value.
    validate.errors = null;
  }
  const said = `it takes too long to hold the ${whole.part} against the package's schema`;
  return unjudged("too_slow", `${said}: make the ${whole.part} smaller, or the schema simpler`);
}

function problemOf(error: ErrorObject, { part, path }: Place): LaunchProblem {
  const { instancePath, keyword, params, message = "is not valid" } = error;
  const at = `${path}${instancePath}`;
  const inside = (name: string) => at + pointer([name]);
  const problem = (where: string, code: string, said: string): LaunchProblem => {
    return { part, path: where, code, message: `${where === "" ? "the whole" : where} ${said}` };
  };
  switch (keyword) {
    case "required":
      return problem(inside(params.missingProperty), "required", "is required and has no value");
    case "additionalProperties":
    case "unevaluatedProperties": {
      const name = params.additionalProperty ?? params.unevaluatedProperty;
      return problem(inside(name), "unknown_field", "is no field that the package knows");
    }
    case "type":
      return problem(at, "wrong_type", `must be ${([] as string[]).concat(params.type).join(" or ")}`);
    case "enum":
      return problem(at, "not_allowed", `must be one of ${listed(params.allowedValues)}`);
    case "const":
      return problem(at, "not_allowed", `must be ${JSON.stringify(params.allowedValue)}`);
    default:
      return problem(
        at,
        keyword.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        message,
      );
  }
}

function listed(values: readonly unknown[]): string {
  const shown = values.slice(0, LISTED_MAX).map((value) => JSON.stringify(value));
  return values.length > LISTED_MAX ? `${shown.join(", ")}, …` : shown.join(", ");
}

/**
 * Holds a run's inputs against the package's schema: each body that an entrypoint is sent. Without any, the manifest's
 * own initial_inputs are what it is sent, and the schema is asked only when there are none of those either.
 */
export async function inputProblems(
  schema: JsonObject,
  inputs: JsonObject,
  hasInitialInputs: boolean,
): Promise<readonly LaunchProblem[]> {
  if (Object.keys(inputs).length === 0 && hasInitialInputs) return [];
  const addressed = inputs.$entrypoints;
  if (!isObject(addressed)) return schemaProblems(schema, inputs, { part: "inputs", path: "" });
  return problemsOf(schema, () => bodiesOf(addressed), { part: "inputs", path: "/$entrypoints" });
}

function* bodiesOf(addressed: JsonObject): Iterable<PlacedValue> {
  for (const [nodeId, bodies] of Object.entries(addressed)) {
    const path = pointer(["$entrypoints", nodeId]);
    if (!Array.isArray(bodies)) yield { value: bodies, place: { part: "inputs", path } };
    else
      for (const [i, value] of bodies.entries())
        yield { value, place: { part: "inputs", path: `${path}/${i}` } };
  }
}
