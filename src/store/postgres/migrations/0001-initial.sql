-- Times are milliseconds since 1970. Columns that end in _json hold JSON text. Texts are compared byte by byte, as SQLite does:
-- ids are ordered by time, and pages continue behind an id. What the tables are for stands in ../../sqlite/migrations.

-- SQLite's hint that few rows are so, which shared queries carry: here it is the condition itself, and costs nothing.
CREATE FUNCTION unlikely(condition boolean) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT condition';

CREATE TABLE jobs (
  job_id             TEXT COLLATE "C" PRIMARY KEY,
  run_id             TEXT COLLATE "C" NOT NULL UNIQUE,
  graph_id           TEXT COLLATE "C" NOT NULL,
  job_name           TEXT COLLATE "C",
  type               TEXT COLLATE "C" NOT NULL,
  status             TEXT COLLATE "C" NOT NULL,
  terminal           BIGINT NOT NULL,
  owner              TEXT COLLATE "C",
  epoch              BIGINT NOT NULL,
  revision           BIGINT NOT NULL,
  submitted_at       BIGINT NOT NULL,
  updated_at         BIGINT NOT NULL,
  started_at         BIGINT,
  paused_at          BIGINT,
  deadline_at        BIGINT,
  placement_policy   TEXT COLLATE "C" NOT NULL,
  recovery_policy    TEXT COLLATE "C" NOT NULL,
  executor_count     BIGINT NOT NULL,
  active_executors   BIGINT NOT NULL,
  event_seq          BIGINT NOT NULL,
  message_seq        BIGINT NOT NULL,
  task_seq           BIGINT NOT NULL,
  log_bytes          BIGINT NOT NULL,
  partial            BIGINT NOT NULL,
  bundle_fingerprint TEXT COLLATE "C",
  root_agents_json   TEXT COLLATE "C" NOT NULL,
  sandboxes_json     TEXT COLLATE "C" NOT NULL,
  last_event_json    TEXT COLLATE "C" NOT NULL,
  failure_json       TEXT COLLATE "C",
  result_json        TEXT COLLATE "C",
  definition_id TEXT COLLATE "C",
  trace_id TEXT COLLATE "C" NOT NULL DEFAULT '',
  parent_span_id TEXT COLLATE "C",
  tally_json TEXT COLLATE "C" NOT NULL DEFAULT '{}',
  human_pending BIGINT NOT NULL DEFAULT 0,
  stored_bytes BIGINT NOT NULL DEFAULT 0,
  own_payload BIGINT NOT NULL DEFAULT 0,
  brief_lines TEXT COLLATE "C",
  brief_agents_json TEXT COLLATE "C",
  brief_manifest_json TEXT COLLATE "C"
);

CREATE TABLE job_sources (
  job_id             TEXT COLLATE "C" PRIMARY KEY,
  manifest_json      TEXT COLLATE "C" NOT NULL,
  configuration_json TEXT COLLATE "C"
);

CREATE TABLE events (
  job_id      TEXT COLLATE "C" NOT NULL,
  first_seq   BIGINT NOT NULL,
  event_count BIGINT NOT NULL,
  lines       TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (job_id, first_seq)
);

CREATE TABLE agents (
  job_id             TEXT COLLATE "C" NOT NULL,
  agent_index        BIGINT NOT NULL,
  agent_id           TEXT COLLATE "C" NOT NULL,
  status             TEXT COLLATE "C" NOT NULL,
  done               BIGINT NOT NULL,
  processed_messages BIGINT NOT NULL,
  state_json         TEXT COLLATE "C" NOT NULL,
  last_error         TEXT COLLATE "C",
  unrouted_json      TEXT COLLATE "C",
  lease_json         TEXT COLLATE "C",
  PRIMARY KEY (job_id, agent_index)
);

CREATE TABLE messages (
  job_id       TEXT COLLATE "C" NOT NULL,
  agent_index  BIGINT NOT NULL,
  seq          BIGINT NOT NULL,
  message_json TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (job_id, agent_index, seq)
);

CREATE TABLE items (
  job_id      TEXT COLLATE "C" NOT NULL,
  agent_index BIGINT NOT NULL,
  first_seq   BIGINT NOT NULL,
  lines       TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (job_id, agent_index, first_seq)
);

CREATE TABLE tasks (
  job_id       TEXT COLLATE "C" NOT NULL,
  task_seq     BIGINT NOT NULL,
  agent_index  BIGINT NOT NULL,
  kind         TEXT COLLATE "C" NOT NULL,
  attempt      BIGINT NOT NULL,
  failures     BIGINT NOT NULL,
  state_json   TEXT COLLATE "C" NOT NULL,
  message_json TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (job_id, task_seq)
);

CREATE TABLE dead_letters (
  dead_letter_id TEXT COLLATE "C" PRIMARY KEY,
  job_id         TEXT COLLATE "C" NOT NULL,
  agent_id       TEXT COLLATE "C",
  reason         TEXT COLLATE "C" NOT NULL,
  attempts       BIGINT NOT NULL,
  message_json   TEXT COLLATE "C" NOT NULL,
  created_at     BIGINT NOT NULL,
  status TEXT COLLATE "C" NOT NULL DEFAULT 'open',
  retried_at BIGINT
);

CREATE INDEX dead_letters_job ON dead_letters (job_id, dead_letter_id);

CREATE TABLE artifacts (
  run_id       TEXT COLLATE "C" NOT NULL,
  artifact_id  TEXT COLLATE "C" NOT NULL,
  job_id       TEXT COLLATE "C" NOT NULL,
  agent_id     TEXT COLLATE "C",
  name         TEXT COLLATE "C" NOT NULL,
  kind         TEXT COLLATE "C" NOT NULL,
  title        TEXT COLLATE "C",
  is_primary   BIGINT NOT NULL,
  size         BIGINT NOT NULL,
  sha256       TEXT COLLATE "C" NOT NULL,
  content_type TEXT COLLATE "C" NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (run_id, artifact_id)
);

CREATE INDEX artifacts_job ON artifacts (job_id);

CREATE INDEX artifacts_blob ON artifacts (sha256);

CREATE TABLE garbage (
  kind TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (kind, name)
);

CREATE TABLE bundles (
  bundle_id   TEXT COLLATE "C" PRIMARY KEY,
  fingerprint TEXT COLLATE "C" NOT NULL,
  graph_id    TEXT COLLATE "C" NOT NULL,
  name        TEXT COLLATE "C" NOT NULL,
  source_kind TEXT COLLATE "C" NOT NULL,
  source_path TEXT COLLATE "C",
  size_bytes  BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL
);

CREATE INDEX jobs_removable ON jobs (submitted_at) WHERE terminal = 1 AND definition_id IS NULL;

CREATE INDEX artifacts_outputs ON artifacts (run_id, is_primary DESC, artifact_id) WHERE kind = 'output';

CREATE TABLE job_definitions (
  job_id             TEXT COLLATE "C" PRIMARY KEY,
  name               TEXT COLLATE "C" NOT NULL,
  status             TEXT COLLATE "C" NOT NULL,
  bundle_id          TEXT COLLATE "C",
  blueprint_id       TEXT COLLATE "C",
  bundle_fingerprint TEXT COLLATE "C" NOT NULL,
  graph_id           TEXT COLLATE "C" NOT NULL,
  revision           BIGINT NOT NULL,
  created_at         BIGINT NOT NULL,
  updated_at         BIGINT NOT NULL,
  latest_run_id      TEXT COLLATE "C",
  -- Whether the latest run has ended; 0 while there is none.
  latest_terminal    BIGINT NOT NULL,
  -- How many of its runs have not ended: written with each that begins or ends, because it is asked for all the time.
  active_runs        BIGINT NOT NULL,
  deleted            BIGINT NOT NULL,
  extensions_json    TEXT COLLATE "C" NOT NULL,
  configuration_json TEXT COLLATE "C" NOT NULL
);

CREATE INDEX job_definitions_newest ON job_definitions (job_id DESC) WHERE deleted = 0;

CREATE INDEX job_definitions_newest_open ON job_definitions (job_id DESC) WHERE deleted = 0 AND latest_terminal = 0;

CREATE INDEX job_definitions_bundle ON job_definitions (bundle_id) WHERE deleted = 0 AND bundle_id IS NOT NULL;

CREATE INDEX job_definitions_deleted ON job_definitions (job_id) WHERE deleted = 1;

CREATE TABLE runs (
  run_id                TEXT COLLATE "C" PRIMARY KEY,
  job_id                TEXT COLLATE "C" NOT NULL,
  runtime_job_id        TEXT COLLATE "C" NOT NULL UNIQUE,
  status                TEXT COLLATE "C" NOT NULL,
  terminal              BIGINT NOT NULL,
  desired_state         TEXT COLLATE "C" NOT NULL,
  launched              BIGINT NOT NULL,
  label                 TEXT COLLATE "C",
  trigger_kind          TEXT COLLATE "C" NOT NULL,
  trigger_id            TEXT COLLATE "C",
  trace_id              TEXT COLLATE "C" NOT NULL,
  agents_total          BIGINT NOT NULL,
  created_at            BIGINT NOT NULL,
  started_at            BIGINT,
  finished_at           BIGINT,
  updated_at            BIGINT NOT NULL,
  failure_json          TEXT COLLATE "C",
  config_overrides_json TEXT COLLATE "C",
  inputs_json           TEXT COLLATE "C" NOT NULL,
  parent_span_id TEXT COLLATE "C"
);

CREATE INDEX runs_job ON runs (job_id, run_id);

CREATE INDEX runs_status ON runs (status, run_id);

CREATE INDEX runs_job_status ON runs (job_id, status, run_id);

CREATE INDEX runs_open ON runs (job_id, run_id) WHERE terminal = 0;

CREATE INDEX runs_all_open ON runs (run_id) WHERE terminal = 0;

CREATE TABLE idempotency (
  scope        TEXT COLLATE "C" NOT NULL,
  key          TEXT COLLATE "C" NOT NULL,
  request_hash TEXT COLLATE "C" NOT NULL,
  status       BIGINT NOT NULL,
  headers_json TEXT COLLATE "C" NOT NULL,
  body         TEXT COLLATE "C" NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (scope, key)
);

CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE INDEX bundles_newest ON bundles (created_at DESC, bundle_id DESC);

CREATE INDEX jobs_ended ON jobs (updated_at, job_id, stored_bytes) WHERE terminal = 1;

CREATE INDEX runs_ended_unlaunched ON runs (finished_at, run_id) WHERE terminal = 1 AND launched = 0;

CREATE INDEX jobs_bundle_open ON jobs (bundle_fingerprint) WHERE terminal = 0 AND bundle_fingerprint IS NOT NULL;

CREATE INDEX jobs_bundle_ended ON jobs (bundle_fingerprint, updated_at, job_id)
  WHERE terminal = 1 AND bundle_fingerprint IS NOT NULL;

CREATE INDEX bundles_fingerprint ON bundles (fingerprint);

CREATE INDEX job_definitions_fingerprint ON job_definitions (bundle_fingerprint);

CREATE TABLE human_requests (
  job_id              TEXT COLLATE "C" NOT NULL,
  event_seq           BIGINT NOT NULL,
  request_id          TEXT COLLATE "C" NOT NULL,
  agent_id            TEXT COLLATE "C" NOT NULL,
  task_seq            BIGINT,
  prompt              TEXT COLLATE "C" NOT NULL,
  allowed_json        TEXT COLLATE "C" NOT NULL,
  default_action      TEXT COLLATE "C",
  status              TEXT COLLATE "C" NOT NULL,
  created_at          BIGINT NOT NULL,
  expires_at          BIGINT,
  response_json       TEXT COLLATE "C",
  PRIMARY KEY (job_id, event_seq)
);

CREATE UNIQUE INDEX human_requests_id ON human_requests (job_id, request_id);

CREATE INDEX human_requests_status ON human_requests (job_id, status, event_seq);

CREATE INDEX dead_letters_status ON dead_letters (job_id, status, dead_letter_id);

CREATE INDEX artifacts_final ON artifacts (run_id, artifact_id)
  WHERE name ~ '(^|/)final_artifact\.';

CREATE INDEX job_definitions_blueprint ON job_definitions (blueprint_id, job_id) WHERE deleted = 0 AND blueprint_id IS NOT NULL;

CREATE TABLE operations (
  operation_id TEXT COLLATE "C" PRIMARY KEY,
  kind         TEXT COLLATE "C" NOT NULL,
  target       TEXT COLLATE "C" NOT NULL,
  status       TEXT COLLATE "C" NOT NULL,
  terminal     BIGINT NOT NULL,
  percent      BIGINT NOT NULL,
  label        TEXT COLLATE "C" NOT NULL,
  step         TEXT COLLATE "C",
  event_seq    BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  finished_at  BIGINT,
  steps_json   TEXT COLLATE "C" NOT NULL,
  request_json TEXT COLLATE "C" NOT NULL,
  error_json   TEXT COLLATE "C",
  result_json  TEXT COLLATE "C"
);

CREATE INDEX operations_open ON operations (operation_id) WHERE terminal = 0;

CREATE INDEX operations_target ON operations (target, operation_id);

CREATE INDEX operations_status ON operations (status, operation_id);

CREATE INDEX operations_ended ON operations (finished_at) WHERE terminal = 1;

CREATE TABLE operation_events (
  operation_id TEXT COLLATE "C" NOT NULL,
  seq          BIGINT NOT NULL,
  line         TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (operation_id, seq)
);

CREATE TABLE blueprints (
  blueprint_id TEXT COLLATE "C" PRIMARY KEY,
  state        TEXT COLLATE "C" NOT NULL,
  -- The prepared package; null until there is one.
  fingerprint  TEXT COLLATE "C",
  size_bytes   BIGINT NOT NULL,
  operation_id TEXT COLLATE "C",
  added_at     BIGINT,
  updated_at   BIGINT NOT NULL,
  error_json   TEXT COLLATE "C"
);

CREATE INDEX blueprints_fingerprint ON blueprints (fingerprint) WHERE fingerprint IS NOT NULL;

CREATE TABLE blueprint_assets (
  blueprint_id TEXT COLLATE "C" NOT NULL,
  kind         TEXT COLLATE "C" NOT NULL,
  asset_id     TEXT COLLATE "C" NOT NULL,
  -- Of what it was made; another one means that it has to be made anew.
  recipe       TEXT COLLATE "C" NOT NULL,
  ready        BIGINT NOT NULL,
  bytes        BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (blueprint_id, kind, asset_id)
);

CREATE INDEX blueprint_assets_id ON blueprint_assets (kind, asset_id);

CREATE TABLE run_ports (
  port   BIGINT PRIMARY KEY,
  run_id TEXT COLLATE "C" NOT NULL,
  label  TEXT COLLATE "C" NOT NULL
);

CREATE INDEX run_ports_run ON run_ports (run_id);

CREATE INDEX artifacts_output_names ON artifacts (run_id, agent_id, md5(name)) WHERE kind = 'output';

CREATE TABLE mailboxes (
  job_id      TEXT COLLATE "C" NOT NULL,
  agent_index BIGINT NOT NULL,
  depth       BIGINT NOT NULL,
  PRIMARY KEY (job_id, agent_index)
);

CREATE INDEX jobs_newest ON jobs (submitted_at, job_id);

CREATE INDEX jobs_newest_open ON jobs (submitted_at, job_id) WHERE terminal = 0;
