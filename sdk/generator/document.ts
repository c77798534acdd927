// The slice of an OpenAPI 3.1 document that the generator reads, and how the document is kept on disk.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: Json;
  readonly enum?: readonly Json[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
}

export interface Parameter {
  readonly in: "path" | "query" | "header" | "cookie";
  readonly name: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>;

export interface Answer {
  readonly content?: Content;
}

export interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Answer | { readonly $ref: string }>>;
}

/** References may lead to other components than schemas; only these are written as types of their own. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

/** What a reference such as #/components/schemas/Run points to. */
export function resolve<T extends object>(document: Document, value: T | { readonly $ref: string }): T {
  if (!("$ref" in value) || value.$ref === undefined) return value as T;
  let found: unknown = document;
  for (const name of String(value.$ref).replace(/^#\//, "").split("/")) {
    found = (found as Readonly<Record<string, unknown>> | undefined)?.[
      name.replaceAll("~1", "/").replaceAll("~0", "~")
    ];
  }
  if (found === undefined) throw new Error(`The document refers to ${value.$ref}, which it does not have.`);
  return found as T;
}

/** The document's text, the same however the server orders its parts: keys are sorted, but for those of examples. */
export function stableText(document: Document): string {
  return `${JSON.stringify(sorted(document as unknown as Json), null, 2)}\n`;
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([key, member]) => [
    key,
    isExample(key) ? member : sorted(member),
  ]);
  return Object.fromEntries(entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}

const isExample = (key: string) => key === "example" || key === "examples" || key === "default";
