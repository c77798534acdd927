// The catalogue of problems: every code the gateway answers with, its HTTP status, and what a reader can do next.
// The OpenAPI document and the docs are made from it. A retired code is never reused.

export interface ProblemKind {
  readonly status: number;
  /** What happened and what to do next, as a sentence for the documentation. */
  readonly meaning: string;
  /** Null: the code in words. */
  readonly title: string | null;
}

const kind = (status: number, meaning: string, title: string | null = null): ProblemKind => ({
  status,
  meaning,
  title,
});

export const problemCodes = {
  malformed_request: kind(400, "The request is not valid HTTP; check how it is sent."),
  malformed_json: kind(400, "The body is not valid JSON; the detail says where.", "Malformed JSON"),
  invalid_parameter: kind(400, "A query value or header is wrong; errors names each."),
  invalid_page_token: kind(
    400,
    "The page token is changed, expired or from another query; start again with the first page.",
  ),
  unauthorized: kind(401, "Send the API token as Authorization: Bearer."),
  invalid_signature: kind(
    401,
    "The request to a webhook is not signed with its secret, or too long ago; the detail says which.",
  ),
  forbidden: kind(403, "The gateway does not answer to this host name or web site."),
  not_found: kind(404, "There is nothing at this path; GET /openapi.json lists the routes."),
  job_not_found: kind(404, "No job has this id, or it was deleted; list the jobs."),
  run_not_found: kind(404, "No run has this id, or its job was deleted; list the runs."),
  bundle_not_found: kind(404, "No bundle has this id; list the bundles or upload it."),
  artifact_not_found: kind(
    404,
    "The run has no such artifact, or it was removed with age; list the run's artifacts.",
  ),
  human_request_not_found: kind(404, "The run has asked nothing under this id; list what it asks."),
  dead_letter_not_found: kind(404, "The run has no dead letter with this id; list its dead letters."),
  blueprint_not_found: kind(
    404,
    "The catalog has no blueprint of this id; list the blueprints, or see SVC_BLUEPRINT_CATALOG.",
  ),
  operation_not_found: kind(
    404,
    "No operation has this id, or it was removed with age; list the operations.",
  ),
  session_not_found: kind(404, "No session or link has this id, or it has ended; list the sessions."),
  deployment_not_found: kind(404, "No deployment has this id, or it was removed; list the deployments."),
  model_not_found: kind(404, "No model has this id, or it was removed; list the models."),
  schedule_not_found: kind(404, "No schedule has this id, or it was removed; list the schedules."),
  event_not_found: kind(404, "No event has this id, or it is older than a week; list the events."),
  node_not_found: kind(404, "No node has this id, or it was removed; list the nodes."),
  service_not_found: kind(404, "No open run has such a service; list the services there are."),
  volume_not_found: kind(404, "No node has such a volume; list them with GET /resource."),
  method_not_allowed: kind(405, "The path takes other methods; Allow lists them."),
  request_timeout: kind(408, "The request did not arrive in time; send it again."),
  conflict: kind(409, "The resource's state does not allow this; the detail says what would."),
  invalid_transition: kind(
    409,
    "The run cannot go from its status to the desired state; read the run first.",
  ),
  run_ended: kind(409, "The run has ended and takes nothing any more; start a new one."),
  already_answered: kind(
    409,
    "The request has another answer, which stands; the detail says whose and since when.",
  ),
  human_request_timed_out: kind(
    409,
    "The time for an answer was over; the worker was told the default action.",
  ),
  already_retried: kind(409, "The dead letter was sent again before; look at the run."),
  idempotency_key_reused: kind(
    409,
    "The key was used for another request in the last 24 hours; send a fresh one.",
  ),
  active_runs: kind(409, "The job has runs that have not ended; wait, cancel them, or use force=true."),
  bundle_in_use: kind(409, "A job was made from the bundle; delete the job first."),
  volume_in_use: kind(409, "A command has the volume; wait until its run has ended, or cancel it."),
  no_free_port: kind(409, "The machine has no free port for the run; end other runs first."),
  blueprint_broken: kind(
    409,
    "The blueprint's folder has mistakes; GET the blueprint lists them. Fix them, then try again.",
  ),
  blueprint_busy: kind(
    409,
    "The blueprint is being added or removed; wait for the operation that the detail names.",
  ),
  blueprint_in_use: kind(
    409,
    "Runs of the blueprint have not ended; wait for them or cancel them, then remove it.",
  ),
  requirements_not_met: kind(
    409,
    "This machine lacks what the package requires; errors names each requirement and what to do.",
  ),
  resource_unsatisfiable: kind(
    409,
    "A node asks for more cores, memory, disk or GPUs than any machine has for commands, or for a sandbox where none can be had; ask for less, raise the limits, or do what the detail says.",
  ),
  not_clustered: kind(
    409,
    "The program is the only node: set SVC_DATABASE_URL=postgres://… for all that are to be nodes of one cluster.",
  ),
  last_node: kind(
    409,
    "No other node is ready to take the node's jobs, and stays; use force to remove it all the same.",
  ),
  model_busy: kind(409, "The model is being changed; wait for the operation that the detail names."),
  model_in_use: kind(409, "Something needs the model; the detail says what, and what to do."),
  node_busy: kind(409, "The node is being removed, or leaves; wait for the operation that the detail names."),
  precondition_failed: kind(
    412,
    "The resource has changed; the ETag header has the current one. Read it again, then retry.",
  ),
  payload_too_large: kind(413, "The body is over the limit; send less."),
  uri_too_long: kind(414, "Shorten the path or the query.", "URI Too Long"),
  unsupported_media_type: kind(415, "Send the content type that the route takes."),
  range_not_satisfiable: kind(416, "The Range lies outside the file; Content-Range has its size."),
  validation_failed: kind(
    422,
    "The body does not fit its schema, unknown fields included; errors names each mistake.",
  ),
  precondition_required: kind(428, "Send If-Match with the resource's ETag."),
  rate_limited: kind(429, "Wait as many seconds as Retry-After says, then try again.", "Too Many Requests"),
  headers_too_large: kind(431, "Send fewer or shorter headers.", "Request Header Fields Too Large"),
  internal: kind(500, "The server's log has the cause under the request id.", "Internal Server Error"),
  service_not_passing: kind(
    503,
    "The service is there, and its checks do not pass; GET /services shows why.",
  ),
  unavailable: kind(503, "Wait as many seconds as Retry-After says, then try again.", "Service Unavailable"),
  insufficient_storage: kind(
    507,
    "All bundles together are at SVC_BUNDLES_MAX_BYTES; delete some that no job uses, or raise it.",
  ),
} as const satisfies Readonly<Record<string, ProblemKind>>;

export type ProblemCode = keyof typeof problemCodes;

/** The title of a problem: `Run Not Found` of `run_not_found`. */
export function titleOf(code: ProblemCode): string {
  return (
    problemCodes[code].title ??
    code.replaceAll("_", " ").replace(/\b[a-z]/g, (letter) => letter.toUpperCase())
  );
}
