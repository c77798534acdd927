// Fields that are not known, and therefore ignored: misspelt ones, and those of other programs. What is known
// is what the JSON Schemas name, so that a person is told what an editor would have completed.
//
// - Notes of one's own have names that begin with "x-", "_" or "$", in objects that allow other fields; there is no
//   warning of them, nor of anything in `metadata`.
// - Where fields of one's own have a use (the configuration of a module), only what looks misspelt is a warning.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { quoted } from "../engine/manifest/problems.ts";
import { atOnce } from "../lib/slices.ts";
import { nearestName } from "../lib/text.ts";
import type { Reading } from "./describe-reading.ts";
import type { Schema } from "./schema-parts.ts";

/** Comparing one with all known names takes a few microseconds. */
const UNKNOWN_FIELDS_MAX = 1_000;

const NOTE = /^(?:x-|[_$])/;

/** Values that are looked at in one step: some hundred microseconds. */
const VALUES_PER_STEP = 64;

/** Warns of them in `document`, which is what was read or a part of it. */
export function warnOfUnknownFields(reading: Reading, schema: Schema, document: JsonObject): void {
  atOnce(unknownFieldSteps(reading, schema, document));
}

/** The same in steps. */
export function* unknownFieldSteps(
  reading: Reading,
  schema: Schema,
  document: JsonObject,
): Generator<void, void> {
  let unknownFields = 0;
  let values = 0;
  function* look(
    value: JsonObject | readonly JsonValue[],
    candidates: readonly Schema[],
    path: readonly (string | number)[],
  ): Generator<void, void> {
    if (++values % VALUES_PER_STEP === 0) yield;
    const schemas = candidates.flatMap((one) => applying(one, value));
    if (Array.isArray(value)) {
      const items = schemas.flatMap((one) => (isObject(one.items) ? [one.items] : []));
      for (const [i, item] of value.entries()) {
        if (items.length > 0 && holdsValues(item)) yield* look(item, items, [...path, i]);
      }
      return;
    }
    // With names of the author's own choice, such as variables of an environment, none is a slip.
    if (schemas.some((one) => isObject(one.additionalProperties))) return;
    const fields = schemas.flatMap(({ properties }) => (isObject(properties) ? [properties] : []));
    if (fields.length === 0) return;
    const mayHaveOwn = schemas.some((one) => one.additionalProperties === true);
    const isClosed = schemas.some((one) => one.additionalProperties === false);
    for (const [name, member] of Object.entries(value as JsonObject)) {
      const ofMember = schemasOf(name, fields);
      if (ofMember.length > 0) {
        // Most values of a large manifest are texts: nothing is made for them.
        if (holdsValues(member)) yield* look(member, ofMember, [...path, name]);
        continue;
      }
      if (NOTE.test(name) && !isClosed) continue;
      if (++unknownFields > UNKNOWN_FIELDS_MAX) return;
      const known = [...new Set(fields.flatMap(Object.keys))];
      const nearest = nearestName(name, known);
      if (mayHaveOwn && nearest === null) continue;
      const hint = nearest === null ? `known are ${known.join(", ")}` : `did you mean ${quoted(nearest)}?`;
      reading.warn([...path, name], "unknown_field", `is not a known field, and is ignored: ${hint}`);
    }
  }
  yield* look(document, [schema], []);
}

/** Whether a value has members or items. */
function holdsValues(value: JsonValue): value is JsonObject | readonly JsonValue[] {
  return typeof value === "object" && value !== null;
}

/** The schema itself, and those of its alternatives and conditions that apply to the value. */
function applying(schema: Schema, value: JsonValue): readonly Schema[] {
  const { anyOf, allOf, then } = schema;
  if (anyOf === undefined && allOf === undefined && then === undefined) return [schema];
  const parts = [...schemasIn(anyOf), ...schemasIn(allOf)];
  if (isObject(then) && isObject(schema.if) && meets(value, schema.if)) parts.push(then);
  return [schema, ...parts.flatMap((part) => applying(part, value))];
}

/** Whether an object has the constants that a condition of manifestSchema asks for. */
function meets(value: JsonValue, condition: Schema): boolean {
  if (!isObject(value) || !isObject(condition.properties)) return false;
  return Object.entries(condition.properties).every(([name, of]) => isObject(of) && of.const === value[name]);
}

/** The schemas of a field. */
function schemasOf(name: string, fields: readonly JsonObject[]): readonly Schema[] {
  const found: Schema[] = [];
  for (const one of fields) {
    const schema = Object.hasOwn(one, name) ? one[name] : undefined;
    if (isObject(schema)) found.push(schema);
  }
  return found;
}

function schemasIn(list: JsonValue | undefined): readonly Schema[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}
