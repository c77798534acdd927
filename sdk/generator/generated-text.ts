// The whole of sdk/src/generated.ts, as text that is still to be formatted.

import type { Document } from "./document.ts";
import { operationsText } from "./operations.ts";
import { comment, typeName, typeOf } from "./schema-types.ts";

const HEAD = `// The gateway's records and operations, as its OpenAPI document describes them. Made by sdk/generate.ts: do not edit,
// run \`npm run sdk\` when the API has changed.

/** Any JSON object. */
export type JsonObject = { readonly [key: string]: unknown };

/** What an operation takes that takes nothing. */
type Nothing = Readonly<Record<never, never>>;

/** How an operation is sent, and what comes back. */
export interface OperationShape {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Placeholders in braces. */
  readonly path: string;
  readonly body: "none" | "json" | "multipart";
  /** none: an answer without a body; events: server-sent events. */
  readonly answer: "none" | "json" | "events" | "bytes";
  /** Whether it takes an Idempotency-Key. */
  readonly takesKey: boolean;
  /** Statuses of failures that carry the answer all the same, such as 503 of a health. */
  readonly alsoAnswers?: readonly number[];
}
`;

/** @param codes the catalogue of problem codes, with what each means */
export function generatedText(
  document: Document,
  codes: Readonly<Record<string, { meaning: string }>>,
): string {
  const components = Object.entries(document.components?.schemas ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([name, schema]) =>
        `${comment(schema.description)}export type ${typeName(name)} = ${typeOf(schema)};\n`,
    );
  const problems = Object.entries(codes).map(([code, { meaning }]) => `/** ${meaning} */\n"${code}",`);
  const catalogue =
    `/** The codes of problems, each with what it means. */\nexport const problemCodes = [\n${problems.join("\n")}\n] as const;\n\n` +
    "export type ProblemCode = (typeof problemCodes)[number];\n";
  return [HEAD, ...components, catalogue, operationsText(document)].join("\n");
}
