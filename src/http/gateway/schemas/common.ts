// Schemas that every resource uses. The same objects validate requests and make the OpenAPI document.

import { type TSchema, Type } from "../../core/type.ts";

/** A body or query that takes no fields but its own (spec "Endpoints": unknown request fields are rejected). */
export function strictObject<Properties extends Record<string, TSchema>>(
  properties: Properties,
  options: { readonly description?: string; readonly examples?: unknown[] } = {},
) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

/** An answer's object; later versions may add fields. */
export function answerObject<Properties extends Record<string, TSchema>>(
  properties: Properties,
  options: { readonly description?: string; readonly examples?: unknown[] } = {},
) {
  return Type.Object(properties, options);
}

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** A response without a body. */
export const nothing = (description: string) => Type.Null({ description });

export const Time = (description: string) =>
  Type.String({ format: "date-time", description, examples: ["2026-11-21T09:30:00.000Z"] });

/** Any JSON object. */
export const JsonObjectSchema = (description: string, example: unknown = {}) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>({
    type: "object",
    additionalProperties: true,
    description,
    examples: [example],
  });

export const pageQuery = {
  page_size: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 200,
      default: 50,
      description:
        "Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its next_page_token.",
    }),
  ),
  page_token: Type.Optional(
    Type.String({
      description: "next_page_token of the page before. Good for 24 hours, for the same query.",
    }),
  ),
};

/** The collection envelope. */
export function pageOf(item: TSchema, what: string) {
  return answerObject(
    {
      items: Type.Array(item),
      next_page_token: nullable(
        Type.String({
          description:
            "Pass it back as page_token for the next page; null on the last one, and on no other, however short.",
        }),
      ),
    },
    { description: `A page of ${what}.` },
  );
}

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ examples: ["about:blank"] }),
    title: Type.String({ examples: ["Not Found"] }),
    status: Type.Integer({ examples: [404] }),
    code: Type.String({ description: "Stable, for programs.", examples: ["run_not_found"] }),
    detail: Type.String({ description: "What happened and what to do next, for people." }),
    request_id: Type.String({
      description: "The same as the header X-Request-Id; the server's log names it.",
    }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({
            description: "JSON Pointer into the body, or the name of a parameter or header.",
          }),
          code: Type.String(),
          message: Type.String(),
        }),
      ),
    ),
  },
  { description: "An error (RFC 9457)." },
);

export const idempotencyKeyHeader = Type.Object({
  "idempotency-key": Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        "A fresh unique text for each intended effect. A repeated request with the same key and body gets the first answer again, for 24 hours.",
      examples: ["9f1c6a34-5b0e-4f6e-8a53-0d5b8f0a3c11"],
    }),
  ),
});

export const ifNoneMatchHeader = Type.Object({
  "if-none-match": Type.Optional(
    Type.String({ description: "The ETag of an answer that the client still has.", examples: ['"3-0"'] }),
  ),
});

export const ifMatchHeader = Type.Object({
  "if-match": Type.String({ description: "The current ETag, or *.", examples: ['"3"'] }),
});
