// Schemas that every resource uses. The same objects validate requests and make the OpenAPI document.

import type { JobStatus } from "../../engine/journal.ts";
import { priorities, WEIGHT_MAX } from "../../engine/share.ts";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../core/paging.ts";
import { type Schema, Type } from "../core/type.ts";

export const pageQuery = {
  page_size: Type.Integer(
    "Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its next_page_token.",
    { minimum: 1, maximum: PAGE_SIZE_MAX, default: PAGE_SIZE_DEFAULT },
  ),
  page_token: Type.String("next_page_token of the page before. Good for 24 hours, for the same query."),
};

/** The collection envelope. */
export function pageOf(item: Schema, what: string) {
  return Type.Object(
    {
      items: Type.Array(item),
      next_page_token: Type.Nullable(
        Type.String(
          "Pass it back as page_token for the next page; null on the last one, and on no other, however short.",
        ),
      ),
    },
    `A page of ${what}.`,
  );
}

export const ProblemSchema = Type.Object(
  {
    type: Type.String({ examples: ["about:blank"] }),
    title: Type.String({ examples: ["Not Found"] }),
    status: Type.Integer({ examples: [404] }),
    code: Type.String("Stable, for programs.", { examples: ["run_not_found"] }),
    detail: Type.String("What happened and what to do next, for people."),
    request_id: Type.String("The same as the header X-Request-Id; the server's log names it."),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String("JSON Pointer into the body, or the name of a parameter or header."),
          code: Type.String(),
          message: Type.String(),
        }),
      ),
    ),
  },
  "An error (RFC 9457).",
);

export const LlmErrorSchema = Type.Object(
  {
    error: Type.Object({
      message: Type.String("What happened and what to do next."),
      type: Type.String({ examples: ["invalid_request_error"] }),
      param: Type.Nullable(Type.String("The member of the request that is wrong.")),
      code: Type.Nullable(Type.String({ examples: ["model_not_found"] })),
    }),
  },
  "An error of the OpenAI protocol.",
);

export const idempotencyKeyHeader = Type.Input({
  "idempotency-key": Type.String(
    "A fresh unique text for each intended effect. A repeated request with the same key and body gets the first answer again, for 24 hours.",
    { minLength: 1, maxLength: 255, examples: ["9f1c6a34-5b0e-4f6e-8a53-0d5b8f0a3c11"] },
  ),
});

export const ifNoneMatchHeader = Type.Input({
  "if-none-match": Type.String("The ETag of an answer that the client still has.", { examples: ['"3-0"'] }),
});

export const ifMatchHeader = Type.Object({
  "if-match": Type.String("The current ETag, or *.", { examples: ['"3"'] }),
});

export const jobStatuses: readonly JobStatus[] = [
  "pending",
  "queued",
  "running",
  "paused",
  "completed",
  "failed",
  "cancelled",
];

export const RunStatus = Type.OneOf(jobStatuses, "completed, failed and cancelled are final.");

export const Priority = Type.OneOf(
  priorities,
  "Who is granted slots first when several wait; normal, the default. A run that is passed over rises by one for each minute.",
);

export const Weight = Type.Integer(
  "Slots that the job is granted in its turn while others wait for them, too: jobs share a pool by their weights. 1, the default. Of runs that start later.",
  { minimum: 1, maximum: WEIGHT_MAX },
);

export const RunId = Type.String({ examples: ["run_01k9z1v7m3e8q2x4c6t8b0n5dh"] });
export const AgentId = Type.Nullable(
  Type.String("Null for what concerns the whole run.", { examples: ["writer"] }),
);
export const TraceId = Type.String("W3C trace id.", { examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] });
export const SpanId = Type.String("W3C span id.", { examples: ["00f067aa0ba902b7"] });

export const AgentFilter = Type.String("Of this agent only.", { minLength: 1, maxLength: 200 });

/** Of a job's resources that speak of one of its runs. */
export const WHICH_RUN =
  "Of the job's latest run, or of the one that run_id names. A job without runs has none.";
export const whichRun = {
  run_id: Type.String("One of the job's runs; the latest one without it."),
};

const Reason = Type.Nullable(Type.String("For people: failure.desc, or why the run is queued; else null."));

/** What old clients read in place of the failure. */
export const reasonFields = { reason: Reason, status_reason: Reason };

export const AgentEndsSchema = Type.Object(
  {
    done: Type.Integer("They ended well."),
    failed: Type.Integer(),
    cancelled: Type.Integer("At work, or with messages to read, when the run ended."),
    skipped: Type.Integer("The run ended before anything came to them."),
    not_reached: Type.Integer("No message ever reached them, though the run was completed."),
  },
  "How many agents ended how; only of a run that has ended.",
);
