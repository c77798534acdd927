// The parts of the OpenAPI document that do not come from routes: description, tags, headers.

export const description = `The gateway in front of the Troupe runtime: upload a bundle, create a job from it, start runs of the job, follow them, get their outputs.

- A run is accepted with 202 as soon as it is on disk. Acceptance is not completion: follow \`/runs/{run_id}/events/stream\`, or send \`Prefer: wait=30\` to be answered with the ended run.
- Errors are \`application/problem+json\`; \`code\` is stable, \`detail\` says what to do next.
- Unknown fields and parameters are refused.
- POSTs that create or start something take an \`Idempotency-Key\`: the same key and body get the first answer again, for 24 hours.
- Updates and deletions of jobs, schedules, deployments and models need \`If-Match\` with the ETag.
- Lists are pages: pass \`next_page_token\` back as \`page_token\`.
- Starting a run executes the bundle's code. Cancelling does not reverse what it has done outside.`;

export const tags = [
  { name: "bundles", description: "Uploaded packages: a manifest, configuration, payload." },
  { name: "blueprints", description: "Packages of the catalog: what they take, need and own." },
  {
    name: "operations",
    description:
      "Long-running work: additions and removals of blueprints, installations of models, nodes that join and leave.",
  },
  { name: "jobs", description: "Durable definitions of work, made from bundles." },
  { name: "runs", description: "Executions of jobs: control, events, results, files." },
  { name: "schedules", description: "Rules by which runs of jobs are started." },
  {
    name: "deployments",
    description: "Instances of service graphs, which are kept running and replaced without an outage.",
  },
  { name: "models", description: "Language models: where they come from, and where they are installed." },
  { name: "events", description: "What has happened, and the schedules that react to it." },
  { name: "services", description: "Long-lived processes that open runs offer, found by their names." },
  {
    name: "llm",
    description: "The OpenAI protocol for models that are served, at /api/v1/llm/v1: for its clients.",
  },
  { name: "runtime", description: "The embedded runtime: what it does, and whether its machine is well." },
  { name: "console", description: "Sessions of browsers, and links that open them." },
  { name: "system", description: "Health, nodes, summaries, metrics." },
];

export const securitySchemes = {
  bearer: {
    type: "http",
    scheme: "bearer",
    description:
      "The API token, when SVC_API_TOKEN is set. Without it the gateway answers this machine only.",
  },
  basic: {
    type: "http",
    scheme: "basic",
    description: "For browsers: any user name, and the API token as password.",
  },
};

const header = (text: string, example: string) => ({
  description: text,
  schema: { type: "string" },
  example,
});

/** Headers of answers, by the name that the document refers to them with. */
export const headers = {
  "X-Request-Id": header("The request's own id, or the client's when it sent a sane one.", "req_k3f9x2ab_1"),
  Location: header(
    "Where to look at what was made or started.",
    "/api/v1/runs/run_01k9z1v7m3e8q2x4c6t8b0n5dh",
  ),
  ETag: header("The resource's version, for If-Match and If-None-Match.", '"3"'),
  "Retry-After": header("Seconds to wait before the next try.", "2"),
  "WWW-Authenticate": header("How to authenticate.", "Bearer"),
  "Preference-Applied": header("wait: everything that was started has ended.", "wait"),
  Vary: header("Prefer: the answer depends on that header.", "Prefer"),
  "Idempotency-Replayed": header("true: this is the answer to an earlier request with the same key.", "true"),
};

/** Operations whose successes have an ETag. */
export const withETag: ReadonlySet<string> = new Set(["createJob", "getJob", "updateJob", "getRunArtifact"]);

/** The body of an upload, which is taken in as it comes, without a schema. */
export const uploadBody = {
  required: true,
  content: {
    "multipart/form-data": {
      schema: {
        type: "object",
        required: ["bundle"],
        properties: {
          bundle: {
            type: "string",
            contentMediaType: "application/zip",
            description: "A zip whose root, or single top folder, holds manifest.json.",
          },
        },
      },
      encoding: { bundle: { contentType: "application/zip" } },
    },
  },
};
