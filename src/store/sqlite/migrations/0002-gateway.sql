-- The gateway's records: durable job definitions, runs, promised answers. A runtime job of the gateway is named by
-- its run (runs.runtime_job_id = jobs.job_id).

-- The id by which workers know their job; null: the runtime job's own, and no run of the gateway stands behind it.
ALTER TABLE jobs ADD COLUMN definition_id TEXT;
-- What the runtime's own cleanup may remove.
CREATE INDEX jobs_removable ON jobs (submitted_at) WHERE terminal = 1 AND definition_id IS NULL;

-- Texts that may be long stand last in their rows, so that what stands before them is read without them.
-- Outputs in the order in which they are listed.
CREATE INDEX artifacts_outputs ON artifacts (run_id, is_primary DESC, artifact_id) WHERE kind = 'output';

CREATE TABLE job_definitions (
  job_id             TEXT PRIMARY KEY,
  name               TEXT NOT NULL,
  status             TEXT NOT NULL,
  bundle_id          TEXT,
  blueprint_id       TEXT,
  bundle_fingerprint TEXT NOT NULL,
  graph_id           TEXT NOT NULL,
  revision           INTEGER NOT NULL,
  created_at         INTEGER NOT NULL,
  updated_at         INTEGER NOT NULL,
  latest_run_id      TEXT,
  -- Whether the latest run has ended; 0 while there is none.
  latest_terminal    INTEGER NOT NULL,
  -- How many of its runs have not ended: written with each that begins or ends, because it is asked for all the time.
  active_runs        INTEGER NOT NULL,
  deleted            INTEGER NOT NULL,
  extensions_json    TEXT NOT NULL,
  configuration_json TEXT NOT NULL
);
CREATE INDEX job_definitions_newest ON job_definitions (job_id DESC) WHERE deleted = 0;
CREATE INDEX job_definitions_newest_open ON job_definitions (job_id DESC) WHERE deleted = 0 AND latest_terminal = 0;
CREATE INDEX job_definitions_bundle ON job_definitions (bundle_id) WHERE deleted = 0 AND bundle_id IS NOT NULL;
CREATE INDEX job_definitions_deleted ON job_definitions (job_id) WHERE deleted = 1;

-- status, started_at and finished_at follow the runtime job, in its own transactions. updated_at is the last time the
-- gateway wrote the row; the runtime job has its own.
CREATE TABLE runs (
  run_id                TEXT PRIMARY KEY,
  job_id                TEXT NOT NULL,
  runtime_job_id        TEXT NOT NULL UNIQUE,
  status                TEXT NOT NULL,
  terminal              INTEGER NOT NULL,
  desired_state         TEXT NOT NULL,
  launched              INTEGER NOT NULL,
  label                 TEXT,
  trigger_kind          TEXT NOT NULL,
  trigger_id            TEXT,
  trace_id              TEXT NOT NULL,
  agents_total          INTEGER NOT NULL,
  created_at            INTEGER NOT NULL,
  started_at            INTEGER,
  finished_at           INTEGER,
  updated_at            INTEGER NOT NULL,
  failure_json          TEXT,
  config_overrides_json TEXT,
  inputs_json           TEXT NOT NULL
);
CREATE INDEX runs_job ON runs (job_id, run_id);
CREATE INDEX runs_status ON runs (status, run_id);
CREATE INDEX runs_job_status ON runs (job_id, status, run_id);
CREATE INDEX runs_open ON runs (job_id, run_id) WHERE terminal = 0;
CREATE INDEX runs_all_open ON runs (run_id) WHERE terminal = 0;

CREATE TABLE idempotency (
  scope        TEXT NOT NULL,
  key          TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  status       INTEGER NOT NULL,
  headers_json TEXT NOT NULL,
  body         TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE INDEX bundles_newest ON bundles (created_at DESC, bundle_id DESC);
