// The catalogue of problems: every code the gateway answers with, its HTTP status, and what a reader can do next.
// The OpenAPI document and the docs are made from it. A code that was retired is never used again.

export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  /** What happened and what to do next, as a sentence for the documentation. */
  readonly meaning: string;
}

const kind = (status: number, title: string, meaning: string): ProblemKind => ({ status, title, meaning });

export const problemCodes = {
  malformed_request: kind(400, "Malformed Request", "The request is not valid HTTP; check how it is sent."),
  malformed_json: kind(400, "Malformed JSON", "The body is not valid JSON; the detail says where."),
  invalid_parameter: kind(400, "Invalid Parameter", "A query value or header is wrong; errors names each."),
  invalid_page_token: kind(
    400,
    "Invalid Page Token",
    "The page token is changed, expired or from another query; start again with the first page.",
  ),
  unauthorized: kind(401, "Unauthorized", "Send the API token as Authorization: Bearer."),
  forbidden: kind(403, "Forbidden", "The gateway does not answer to this host name or web site."),
  not_found: kind(404, "Not Found", "There is nothing at this path; GET /openapi.json lists the routes."),
  job_not_found: kind(404, "Job Not Found", "No job has this id, or it was deleted; list the jobs."),
  run_not_found: kind(404, "Run Not Found", "No run has this id, or its job was deleted; list the runs."),
  bundle_not_found: kind(404, "Bundle Not Found", "No bundle has this id; list the bundles or upload it."),
  artifact_not_found: kind(
    404,
    "Artifact Not Found",
    "The run has no such artifact, or it was removed with age; list the run's artifacts.",
  ),
  human_request_not_found: kind(
    404,
    "Human Request Not Found",
    "The run has asked nothing under this id; list what it asks.",
  ),
  dead_letter_not_found: kind(
    404,
    "Dead Letter Not Found",
    "The run has no dead letter with this id; list its dead letters.",
  ),
  blueprint_not_found: kind(
    404,
    "Blueprint Not Found",
    "The catalog has no blueprint of this id; list the blueprints, or see SVC_BLUEPRINT_CATALOG.",
  ),
  operation_not_found: kind(
    404,
    "Operation Not Found",
    "No operation has this id, or it was removed with age; list the operations.",
  ),
  service_not_found: kind(
    404,
    "Service Not Found",
    "No open run has such a service; list the services there are.",
  ),
  method_not_allowed: kind(405, "Method Not Allowed", "The path takes other methods; Allow lists them."),
  request_timeout: kind(408, "Request Timeout", "The request did not arrive in time; send it again."),
  conflict: kind(409, "Conflict", "The resource's state does not allow this; the detail says what would."),
  invalid_transition: kind(
    409,
    "Invalid Transition",
    "The run cannot go from its status to the desired state; read the run first.",
  ),
  run_ended: kind(409, "Run Ended", "The run has ended and takes nothing any more; start a new one."),
  already_answered: kind(
    409,
    "Already Answered",
    "The request has another answer, which stands; the detail says whose and since when.",
  ),
  human_request_timed_out: kind(
    409,
    "Human Request Timed Out",
    "The time for an answer was over; the worker was told the default action.",
  ),
  already_retried: kind(409, "Already Retried", "The dead letter was sent again before; look at the run."),
  idempotency_key_reused: kind(
    409,
    "Idempotency Key Reused",
    "The key was used for another request in the last 24 hours; send a fresh one.",
  ),
  active_runs: kind(
    409,
    "Active Runs",
    "The job has runs that have not ended; wait, cancel them, or use force=true.",
  ),
  bundle_in_use: kind(409, "Bundle In Use", "A job was made from the bundle; delete the job first."),
  no_free_port: kind(409, "No Free Port", "The machine has no free port for the run; end other runs first."),
  blueprint_broken: kind(
    409,
    "Blueprint Broken",
    "The blueprint's folder has mistakes; GET the blueprint lists them. Mend them, then try again.",
  ),
  blueprint_busy: kind(
    409,
    "Blueprint Busy",
    "The blueprint is being added or removed; wait for the operation that the detail names.",
  ),
  blueprint_in_use: kind(
    409,
    "Blueprint In Use",
    "Runs of the blueprint have not ended; wait for them or cancel them, then remove it.",
  ),
  requirements_not_met: kind(
    409,
    "Requirements Not Met",
    "This machine lacks what the package requires; errors names each requirement and what to do.",
  ),
  precondition_failed: kind(
    412,
    "Precondition Failed",
    "The resource has changed; the ETag header has the current one. Read it again, then retry.",
  ),
  payload_too_large: kind(413, "Payload Too Large", "The body is over the limit; send less."),
  uri_too_long: kind(414, "URI Too Long", "Shorten the path or the query."),
  unsupported_media_type: kind(415, "Unsupported Media Type", "Send the content type that the route takes."),
  range_not_satisfiable: kind(
    416,
    "Range Not Satisfiable",
    "The Range lies outside the file; Content-Range has its size.",
  ),
  validation_failed: kind(
    422,
    "Validation Failed",
    "The body does not fit its schema, unknown fields included; errors names each mistake.",
  ),
  precondition_required: kind(428, "Precondition Required", "Send If-Match with the resource's ETag."),
  rate_limited: kind(429, "Too Many Requests", "Wait as many seconds as Retry-After says, then try again."),
  headers_too_large: kind(431, "Request Header Fields Too Large", "Send fewer or shorter headers."),
  internal: kind(500, "Internal Server Error", "The server's log has the cause under the request id."),
  service_not_passing: kind(
    503,
    "Service Not Passing",
    "The service is there, and its checks do not pass; GET /services shows why.",
  ),
  unavailable: kind(503, "Service Unavailable", "Wait as many seconds as Retry-After says, then try again."),
  insufficient_storage: kind(
    507,
    "Insufficient Storage",
    "All bundles together are at SVC_BUNDLES_MAX_BYTES; delete some that no job uses, or raise it.",
  ),
} as const satisfies Readonly<Record<string, ProblemKind>>;

export type ProblemCode = keyof typeof problemCodes;
