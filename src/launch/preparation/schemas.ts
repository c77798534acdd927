// A package's own JSON Schemas over a launch: `config_schema` over the resolved configuration, `input_schema` over the
// inputs. And the schema of a person's question, over the data of the answer.
//
// - Every mistake at once, as a path and a sentence; a bounded number of them.

import type { ErrorObject } from "ajv";
import { askSchema } from "../../blueprints/json-schema.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { pointer } from "../../lib/text.ts";
import type { LaunchProblem } from "./findings.ts";

const MISTAKES_MAX = 100;
const LISTED_MAX = 20;

interface Place<Part extends string = LaunchProblem["part"]> {
  readonly part: Part;
  readonly path: string;
}

type Problem<Part extends string> = Place<Part> & Pick<LaunchProblem, "code" | "message">;

interface PlacedValue<Part extends string> {
  readonly value: JsonValue;
  readonly place: Place<Part>;
}

/**
 * Holds a value against a schema.
 *
 * @param place where the value stands: the part, and its JSON Pointer there
 */
export function schemaProblems<Part extends string>(
  schema: JsonObject,
  value: JsonValue,
  place: Place<Part>,
): readonly Problem<Part>[] {
  return problemsOf(schema, () => [{ value, place }], place);
}

/** Holds the data of a person's answer against the schema of the question; a message goes on after its path. */
export function problemsOfAnswer(schema: JsonObject, data: JsonValue) {
  return schemaProblems(schema, data, { part: "data", path: "/data" }).map(({ path, code, message }) => ({
    path,
    code,
    message: message.replace(`${path} `, ""),
  }));
}

/** @param whole where all of the values stand */
function problemsOf<Part extends string>(
  schema: JsonObject,
  values: () => Iterable<PlacedValue<Part>>,
  whole: Place<Part>,
): readonly Problem<Part>[] {
  const problems: Problem<Part>[] = [];
  const unjudged = (code: string, message: string) => [...problems, { ...whole, code, message }];
  try {
    const isJudged = askSchema(schema, (validate) => {
      problems.length = 0;
      for (const { value, place } of values()) {
        if (validate(value)) continue;
        const mistakes = (validate.errors ?? []).filter(({ keyword }) => keyword !== "if");
        problems.push(...mistakes.slice(0, MISTAKES_MAX).map((error) => problemOf(error, place)));
        if (problems.length >= MISTAKES_MAX) return;
      }
    });
    if (isJudged) return problems.slice(0, MISTAKES_MAX);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const message = "refers to itself without end, or is nested too deep: fix the schema";
    return unjudged("endless_schema", `the schema of the ${whole.part} ${message}`);
  }
  const message = `it takes too long to hold the ${whole.part} against its schema`;
  return unjudged("too_slow", `${message}: make the ${whole.part} smaller, or the schema simpler`);
}

function problemOf<Part extends string>(error: ErrorObject, { part, path }: Place<Part>): Problem<Part> {
  const { instancePath, keyword, params, message = "is not valid" } = error;
  const at = `${path}${instancePath}`;
  const inside = (name: string) => at + pointer([name]);
  const problem = (where: string, code: string, clause: string): Problem<Part> => {
    return { part, path: where, code, message: `${where === "" ? "the whole" : where} ${clause}` };
  };
  switch (keyword) {
    case "required":
      return problem(inside(params.missingProperty), "required", "is required and has no value");
    case "additionalProperties":
    case "unevaluatedProperties": {
      const name = params.additionalProperty ?? params.unevaluatedProperty;
      return problem(inside(name), "unknown_field", "is no field that the schema knows");
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
 * Holds a run's inputs against its schema: each body that an entrypoint is sent. Without any, the manifest's
 * own initial_inputs are what it is sent, and the schema is asked only when there are none of those either.
 */
export function inputProblems(
  schema: JsonObject,
  inputs: JsonObject,
  hasInitialInputs: boolean,
): readonly LaunchProblem[] {
  if (Object.keys(inputs).length === 0 && hasInitialInputs) return [];
  const addressed = inputs.$entrypoints;
  if (!isObject(addressed)) return schemaProblems(schema, inputs, { part: "inputs", path: "" });
  return problemsOf(schema, () => bodiesOf(addressed), { part: "inputs", path: "/$entrypoints" });
}

function* bodiesOf(addressed: JsonObject): Iterable<PlacedValue<"inputs">> {
  for (const [nodeId, bodies] of Object.entries(addressed)) {
    const path = pointer(["$entrypoints", nodeId]);
    if (!Array.isArray(bodies)) yield { value: bodies, place: { part: "inputs", path } };
    else
      for (const [i, value] of bodies.entries())
        yield { value, place: { part: "inputs", path: `${path}/${i}` } };
  }
}
