// What the OpenAPI document says can be asked for, as the fuzzer needs it.

/** A JSON Schema, as far as request schemas of the document go. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly schema: Schema;
}

export interface Operation {
  readonly method: string;
  /** With parameters in braces. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Null: it takes none. */
  readonly body: { readonly contentType: string; readonly schema: Schema } | null;
  /** The statuses that are documented. */
  readonly statuses: ReadonlySet<number>;
}

export interface Surface {
  readonly operations: readonly Operation[];
  /** The schema behind a reference; others as they are. */
  resolve(schema: Schema): Schema;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

interface DocumentedOperation {
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<Record<string, unknown>>;
}

const METHODS = new Set(["get", "put", "post", "patch", "delete"]);

export function surfaceOf(document: object): Surface {
  const { paths } = document as Document;
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([key]) => METHODS.has(key))
      .map(([key, found]) => toOperation(document, key.toUpperCase(), path, found as DocumentedOperation)),
  );
  return {
    operations,
    resolve: (schema) => (schema.$ref === undefined ? schema : (at(document, schema.$ref) as Schema)),
  };
}

function toOperation(document: object, method: string, path: string, found: DocumentedOperation): Operation {
  const [content] = Object.entries(found.requestBody?.content ?? {});
  return {
    method,
    path,
    parameters: (found.parameters ?? []).map((one) =>
      "$ref" in one ? (at(document, one.$ref) as Parameter) : one,
    ),
    body: content === undefined ? null : { contentType: content[0], schema: content[1].schema },
    statuses: new Set(Object.keys(found.responses).map(Number)),
  };
}

/** What a reference such as `#/components/schemas/Job` stands for. */
function at(document: object, reference: string): unknown {
  let found: unknown = document;
  for (const part of reference.split("/").slice(1)) found = (found as Record<string, unknown>)[part];
  if (found === undefined) throw new Error(`The document has no ${reference}.`);
  return found;
}
