// Schemas as the OpenAPI document shows them. OpenAPI 3.1 takes JSON Schema as it is; schemas that are used in many
// places get a name.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonMap = Readonly<Record<string, Json>>;

/** Keywords whose value is a schema, a list of schemas, or schemas by name; all others are data. */
const schemaKeywords = new Set(["items", "additionalProperties", "not", "contains"]);
const listKeywords = new Set(["anyOf", "oneOf", "allOf"]);
const mapKeywords = new Set(["properties"]);

/** The schemas that have a name in the document, and which of them are used. */
export class NamedSchemas {
  /** By the schema's own text: a schema with another description is another schema. */
  readonly #names = new Map<string, string>();
  readonly #schemas: Readonly<Record<string, object>>;
  readonly #used = new Map<string, Json>();

  constructor(schemas: Readonly<Record<string, object>>) {
    this.#schemas = schemas;
    for (const [name, schema] of Object.entries(schemas)) this.#names.set(JSON.stringify(schema), name);
  }

  /** A schema with references in place of what has a name. */
  shown(schema: object): JsonMap {
    const name = this.#names.get(JSON.stringify(schema));
    if (name === undefined) return this.#copy(schema);
    if (!this.#used.has(name)) {
      // Noted before its parts are looked at, in case one of them leads back here.
      this.#used.set(name, null);
      this.#used.set(name, this.#copy(this.#schemas[name]!));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  /** What was referred to, by name in alphabetical order. */
  components(): JsonMap {
    return Object.fromEntries([...this.#used].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #copy(schema: object): JsonMap {
    const copy: Record<string, Json> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (schemaKeywords.has(keyword) && isMap(value)) copy[keyword] = this.shown(value);
      else if (listKeywords.has(keyword)) copy[keyword] = (value as object[]).map((one) => this.shown(one));
      else if (mapKeywords.has(keyword)) copy[keyword] = this.#copyAll(value);
      else copy[keyword] = value as Json;
    }
    return shortened(copy);
  }

  #copyAll(schemas: Readonly<Record<string, object>>): JsonMap {
    return Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, this.shown(one)]));
  }
}

/** An unnamed object or null is shown as one schema of two types. */
function shortened(schema: Record<string, Json>): JsonMap {
  const { anyOf, ...rest } = schema;
  const [only, other] = Array.isArray(anyOf) ? (anyOf as readonly JsonMap[]) : [];
  const isPlain = only !== undefined && typeof only.type === "string" && !("enum" in only);
  return isPlain && other?.type === "null" ? { ...only, type: [only.type!, "null"], ...rest } : schema;
}

const isMap = (value: unknown): value is JsonMap =>
  typeof value === "object" && value !== null && !Array.isArray(value);
