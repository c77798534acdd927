// The tables whose rows make a database one that is in use, and what people call the rows.

export const CONTENT_TABLES = {
  jobs: "jobs",
  job_definitions: "jobs",
  runs: "runs",
  bundles: "bundles",
  blueprints: "added blueprints",
} as const;
