// Schemas that every resource uses. The same objects validate requests and make the OpenAPI document.

import { type TSchema, Type } from "../core/type.ts";

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

/** A response that is no JSON. */
export const bytesOf = (description: string) => ({
  description,
  content: { "application/octet-stream": { schema: Type.String({ format: "binary" }) } },
});

export const oneOf = (values: readonly string[], options: { readonly description?: string } = {}) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    options,
  );

export const RunStatus = oneOf(
  ["pending", "queued", "running", "paused", "completed", "failed", "cancelled"],
  { description: "completed, failed and cancelled are final." },
);

export const RunId = Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] });
export const AgentId = nullable(
  Type.String({ description: "Null for what concerns the whole run.", examples: ["writer"] }),
);
export const TraceId = Type.String({
  description: "W3C trace id.",
  examples: ["4bf92f3577b34da6a3ce929d0e0e4736"],
});
export const SpanId = Type.String({ description: "W3C span id.", examples: ["00f067aa0ba902b7"] });

export const AgentFilter = Type.Optional(
  Type.String({ minLength: 1, maxLength: 200, description: "Of this agent only." }),
);

/** Of a job's resources that speak of one of its runs. */
export const WHICH_RUN =
  "Of the job's latest run, or of the one that run_id names. A job without runs has none.";
export const whichRun = {
  run_id: Type.Optional(Type.String({ description: "One of the job's runs; the latest one without it." })),
};

const Reason = nullable(
  Type.String({ description: "For people: failure.desc, or null. Kept for clients that know no failure." }),
);

/** What old clients read in place of the failure. */
export const reasonFields = { reason: Reason, status_reason: Reason };

export const AgentEndsSchema = answerObject(
  {
    done: Type.Integer({ description: "They ended well." }),
    failed: Type.Integer(),
    cancelled: Type.Integer({ description: "At work, or with messages to read, when the run ended." }),
    skipped: Type.Integer({ description: "The run ended before anything came to them." }),
    not_reached: Type.Integer({ description: "No message ever reached them, though the run was completed." }),
  },
  { description: "How many agents ended how; only of a run that has ended." },
);
