-- Made by `npm run schema` from the migrations.

CREATE TABLE schema_migrations (name TEXT PRIMARY KEY);
CREATE TABLE jobs (
  job_id             TEXT PRIMARY KEY,
  run_id             TEXT NOT NULL UNIQUE,
  graph_id           TEXT NOT NULL,
  job_name           TEXT,
  type               TEXT NOT NULL,
  status             TEXT NOT NULL,
  terminal           INTEGER NOT NULL,
  owner              TEXT,
  epoch              INTEGER NOT NULL,
  revision           INTEGER NOT NULL,
  submitted_at       INTEGER NOT NULL,
  updated_at         INTEGER NOT NULL,
  started_at         INTEGER,
  paused_at          INTEGER,
  deadline_at        INTEGER,
  placement_policy   TEXT NOT NULL,
  recovery_policy    TEXT NOT NULL,
  executor_count     INTEGER NOT NULL,
  active_executors   INTEGER NOT NULL,
  event_seq          INTEGER NOT NULL,
  message_seq        INTEGER NOT NULL,
  task_seq           INTEGER NOT NULL,
  log_bytes          INTEGER NOT NULL,
  partial            INTEGER NOT NULL,
  bundle_fingerprint TEXT,
  root_agents_json   TEXT NOT NULL,
  sandboxes_json     TEXT NOT NULL,
  last_event_json    TEXT NOT NULL,
  failure_json       TEXT,
  result_json        TEXT
, definition_id TEXT, trace_id TEXT NOT NULL DEFAULT '', parent_span_id TEXT, tally_json TEXT NOT NULL DEFAULT '{}', human_pending INTEGER NOT NULL DEFAULT 0, stored_bytes INTEGER NOT NULL DEFAULT 0, own_payload INTEGER NOT NULL DEFAULT 0, fixed_checksum INTEGER, progress_checksum INTEGER, brief_checksum INTEGER, brief_lines TEXT, brief_agents_json TEXT, brief_manifest_json TEXT, priority TEXT NOT NULL DEFAULT 'normal', weight INTEGER NOT NULL DEFAULT 1);
CREATE TABLE job_sources (
  job_id             TEXT PRIMARY KEY,
  manifest_json      TEXT NOT NULL,
  configuration_json TEXT
, checksum INTEGER);
CREATE TABLE events (
  job_id      TEXT NOT NULL,
  first_seq   INTEGER NOT NULL,
  event_count INTEGER NOT NULL,
  lines       TEXT NOT NULL, checksum INTEGER,
  PRIMARY KEY (job_id, first_seq)
);
CREATE TABLE agents (
  job_id             TEXT NOT NULL,
  agent_index        INTEGER NOT NULL,
  agent_id           TEXT NOT NULL,
  status             TEXT NOT NULL,
  done               INTEGER NOT NULL,
  processed_messages INTEGER NOT NULL,
  state_json         TEXT NOT NULL,
  last_error         TEXT,
  unrouted_json      TEXT,
  lease_json         TEXT, checksum INTEGER,
  PRIMARY KEY (job_id, agent_index)
) WITHOUT ROWID;
CREATE TABLE messages (
  job_id       TEXT NOT NULL,
  agent_index  INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  message_json TEXT NOT NULL, checksum INTEGER,
  PRIMARY KEY (job_id, agent_index, seq)
) WITHOUT ROWID;
CREATE TABLE items (
  job_id      TEXT NOT NULL,
  agent_index INTEGER NOT NULL,
  first_seq   INTEGER NOT NULL,
  lines       TEXT NOT NULL, checksum INTEGER,
  PRIMARY KEY (job_id, agent_index, first_seq)
);
CREATE TABLE tasks (
  job_id       TEXT NOT NULL,
  task_seq     INTEGER NOT NULL,
  agent_index  INTEGER NOT NULL,
  kind         TEXT NOT NULL,
  attempt      INTEGER NOT NULL,
  failures     INTEGER NOT NULL,
  state_json   TEXT NOT NULL,
  message_json TEXT NOT NULL, checksum INTEGER,
  PRIMARY KEY (job_id, task_seq)
) WITHOUT ROWID;
CREATE TABLE dead_letters (
  dead_letter_id TEXT PRIMARY KEY,
  job_id         TEXT NOT NULL,
  agent_id       TEXT,
  reason         TEXT NOT NULL,
  attempts       INTEGER NOT NULL,
  message_json   TEXT NOT NULL,
  created_at     INTEGER NOT NULL
, status TEXT NOT NULL DEFAULT 'open', retried_at INTEGER, change_json TEXT);
CREATE INDEX dead_letters_job ON dead_letters (job_id, dead_letter_id);
CREATE TABLE artifacts (
  run_id       TEXT NOT NULL,
  artifact_id  TEXT NOT NULL,
  job_id       TEXT NOT NULL,
  agent_id     TEXT,
  name         TEXT NOT NULL,
  kind         TEXT NOT NULL,
  title        TEXT,
  is_primary   INTEGER NOT NULL,
  size         INTEGER NOT NULL,
  sha256       TEXT NOT NULL,
  content_type TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (run_id, artifact_id)
) WITHOUT ROWID;
CREATE INDEX artifacts_job ON artifacts (job_id);
CREATE INDEX artifacts_blob ON artifacts (sha256);
CREATE TABLE garbage (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE TABLE bundles (
  bundle_id   TEXT PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  graph_id    TEXT NOT NULL,
  name        TEXT NOT NULL,
  source_kind TEXT NOT NULL,
  source_path TEXT,
  size_bytes  INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
);
CREATE INDEX jobs_removable ON jobs (submitted_at) WHERE terminal = 1 AND definition_id IS NULL;
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
, weight INTEGER NOT NULL DEFAULT 1);
CREATE INDEX job_definitions_newest ON job_definitions (job_id DESC) WHERE deleted = 0;
CREATE INDEX job_definitions_newest_open ON job_definitions (job_id DESC) WHERE deleted = 0 AND latest_terminal = 0;
CREATE INDEX job_definitions_bundle ON job_definitions (bundle_id) WHERE deleted = 0 AND bundle_id IS NOT NULL;
CREATE INDEX job_definitions_deleted ON job_definitions (job_id) WHERE deleted = 1;
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
, parent_span_id TEXT, owner TEXT, end_told INTEGER NOT NULL DEFAULT 1, priority TEXT NOT NULL DEFAULT 'normal', blueprint_id TEXT, rerun_of TEXT);
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
CREATE INDEX jobs_ended ON jobs (updated_at, job_id, stored_bytes) WHERE terminal = 1;
CREATE INDEX runs_ended_unlaunched ON runs (finished_at, run_id) WHERE terminal = 1 AND launched = 0;
CREATE INDEX jobs_bundle_open ON jobs (bundle_fingerprint) WHERE terminal = 0 AND bundle_fingerprint IS NOT NULL;
CREATE INDEX jobs_bundle_ended ON jobs (bundle_fingerprint, updated_at, job_id)
  WHERE terminal = 1 AND bundle_fingerprint IS NOT NULL;
CREATE INDEX bundles_fingerprint ON bundles (fingerprint);
CREATE INDEX job_definitions_fingerprint ON job_definitions (bundle_fingerprint);
CREATE TABLE human_requests (
  job_id              TEXT NOT NULL,
  event_seq           INTEGER NOT NULL,
  request_id          TEXT NOT NULL,
  agent_id            TEXT NOT NULL,
  task_seq            INTEGER,
  prompt              TEXT NOT NULL,
  allowed_json        TEXT NOT NULL,
  default_action      TEXT,
  status              TEXT NOT NULL,
  created_at          INTEGER NOT NULL,
  expires_at          INTEGER,
  response_json       TEXT, data_schema_json TEXT,
  PRIMARY KEY (job_id, event_seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX human_requests_id ON human_requests (job_id, request_id);
CREATE INDEX human_requests_status ON human_requests (job_id, status, event_seq);
CREATE INDEX dead_letters_status ON dead_letters (job_id, status, dead_letter_id);
CREATE INDEX artifacts_final ON artifacts (run_id, artifact_id)
  WHERE (name GLOB 'final_artifact.*' OR name GLOB '*/final_artifact.*');
CREATE INDEX job_definitions_blueprint ON job_definitions (blueprint_id, job_id) WHERE deleted = 0 AND blueprint_id IS NOT NULL;
CREATE TABLE operations (
  operation_id TEXT PRIMARY KEY,
  kind         TEXT NOT NULL,
  target       TEXT NOT NULL,
  status       TEXT NOT NULL,
  terminal     INTEGER NOT NULL,
  percent      INTEGER NOT NULL,
  label        TEXT NOT NULL,
  step         TEXT,
  event_seq    INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  finished_at  INTEGER,
  steps_json   TEXT NOT NULL,
  request_json TEXT NOT NULL,
  error_json   TEXT,
  result_json  TEXT
, owner TEXT);
CREATE INDEX operations_open ON operations (operation_id) WHERE terminal = 0;
CREATE INDEX operations_target ON operations (target, operation_id);
CREATE INDEX operations_status ON operations (status, operation_id);
CREATE INDEX operations_ended ON operations (finished_at) WHERE terminal = 1;
CREATE TABLE operation_events (
  operation_id TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  line         TEXT NOT NULL,
  PRIMARY KEY (operation_id, seq)
) WITHOUT ROWID;
CREATE TABLE blueprints (
  blueprint_id TEXT PRIMARY KEY,
  state        TEXT NOT NULL,
  -- The prepared package; null until there is one.
  fingerprint  TEXT,
  size_bytes   INTEGER NOT NULL,
  operation_id TEXT,
  added_at     INTEGER,
  updated_at   INTEGER NOT NULL,
  error_json   TEXT
);
CREATE INDEX blueprints_fingerprint ON blueprints (fingerprint) WHERE fingerprint IS NOT NULL;
CREATE TABLE blueprint_assets (
  blueprint_id TEXT NOT NULL,
  kind         TEXT NOT NULL,
  asset_id     TEXT NOT NULL,
  -- Of what it was made; another one means that it has to be made anew.
  recipe       TEXT NOT NULL,
  ready        INTEGER NOT NULL,
  bytes        INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (blueprint_id, kind, asset_id)
) WITHOUT ROWID;
CREATE INDEX blueprint_assets_id ON blueprint_assets (kind, asset_id);
CREATE TABLE commit_count (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  commits INTEGER NOT NULL
);
CREATE INDEX artifacts_output_names ON artifacts (run_id, agent_id, name, artifact_id) WHERE kind = 'output';
CREATE TABLE mailboxes (
  job_id      TEXT NOT NULL,
  agent_index INTEGER NOT NULL,
  depth       INTEGER NOT NULL,
  PRIMARY KEY (job_id, agent_index)
) WITHOUT ROWID;
CREATE INDEX jobs_newest ON jobs (submitted_at, job_id);
CREATE INDEX jobs_newest_open ON jobs (submitted_at, job_id) WHERE terminal = 0;
CREATE TABLE "run_ports" (
  node   TEXT NOT NULL,
  port   INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  label  TEXT NOT NULL,
  PRIMARY KEY (node, port)
) WITHOUT ROWID;
CREATE INDEX run_ports_run ON run_ports (run_id);
CREATE TABLE schedules (
  schedule_id           TEXT PRIMARY KEY,
  job_id                TEXT NOT NULL,
  blueprint_id          TEXT,
  name                  TEXT NOT NULL,
  kind                  TEXT NOT NULL,
  status                TEXT NOT NULL,
  status_reason         TEXT,
  rule_json             TEXT NOT NULL,
  inputs_json           TEXT NOT NULL,
  config_overrides_json TEXT,
  overlap               TEXT NOT NULL,
  missed_policy         TEXT NOT NULL,
  catchup_limit         INTEGER NOT NULL,
  until                 INTEGER,
  max_runs              INTEGER,
  pause_after_failures  INTEGER,
  due_at                INTEGER,
  next_run_at           INTEGER,
  queued_due_at         INTEGER,
  last_dispatch_json    TEXT,
  failures_in_a_row     INTEGER NOT NULL,
  dispatched            INTEGER NOT NULL,
  skipped               INTEGER NOT NULL,
  missed                INTEGER NOT NULL,
  failed                INTEGER NOT NULL,
  revision              INTEGER NOT NULL,
  version               INTEGER NOT NULL,
  created_at            INTEGER NOT NULL,
  updated_at            INTEGER NOT NULL
, event_type TEXT, waiting_events INTEGER NOT NULL DEFAULT 0, waiting_bytes INTEGER NOT NULL DEFAULT 0, throttled_until INTEGER, webhook_json TEXT, webhook_hash TEXT, priority TEXT NOT NULL DEFAULT 'normal');
CREATE INDEX schedules_due ON schedules (status, next_run_at, schedule_id);
CREATE INDEX schedules_kind ON schedules (kind, schedule_id);
CREATE INDEX schedules_status ON schedules (status, schedule_id);
CREATE INDEX schedules_job ON schedules (job_id, schedule_id);
CREATE TABLE schedule_runs (
  run_id         TEXT PRIMARY KEY,
  schedule_id    TEXT NOT NULL,
  runtime_job_id TEXT NOT NULL
);
CREATE INDEX schedule_runs_schedule ON schedule_runs (schedule_id, run_id);
CREATE TABLE resource_limits (
  id          INTEGER PRIMARY KEY,
  limits_json TEXT NOT NULL,
  revision    INTEGER NOT NULL
);
CREATE TABLE trigger_events (
  seq          INTEGER PRIMARY KEY,
  event_id     TEXT NOT NULL UNIQUE,
  type         TEXT NOT NULL,
  source       TEXT,
  payload_json TEXT NOT NULL,
  received_at  INTEGER NOT NULL
, depth INTEGER NOT NULL DEFAULT 0);
CREATE INDEX trigger_events_type ON trigger_events (type, seq);
CREATE INDEX trigger_events_source ON trigger_events (source, seq);
CREATE INDEX trigger_events_type_source ON trigger_events (type, source, seq);
CREATE TABLE event_matches (
  seq         INTEGER NOT NULL,
  schedule_id TEXT NOT NULL,
  skipped     TEXT,
  run_id      TEXT,
  reason      TEXT,
  waiting     INTEGER NOT NULL,
  PRIMARY KEY (seq, schedule_id)
) WITHOUT ROWID;
CREATE INDEX event_matches_waiting ON event_matches (schedule_id, seq) WHERE waiting = 1;
CREATE INDEX schedules_event_type ON schedules (event_type, status, schedule_id) WHERE event_type IS NOT NULL;
CREATE INDEX runs_end_untold ON runs (run_id) WHERE terminal = 1 AND end_told = 0;
CREATE INDEX event_matches_run ON event_matches (run_id) WHERE run_id IS NOT NULL;
CREATE TABLE schema_admits (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  -- The newest migration that a program must know.
  oldest  TEXT NOT NULL,
  -- The first version that knows it.
  version TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedules_webhook ON schedules (webhook_hash) WHERE webhook_hash IS NOT NULL;
CREATE TABLE deployments (
  deployment_id     TEXT PRIMARY KEY,
  name              TEXT NOT NULL,
  count             INTEGER NOT NULL,
  strategy_json     TEXT NOT NULL,
  version           INTEGER NOT NULL,
  versions_json     TEXT NOT NULL,
  last_version      INTEGER NOT NULL,
  status            TEXT NOT NULL,
  stable_json       TEXT,
  rolling_back      INTEGER NOT NULL,
  promoted          INTEGER NOT NULL,
  progress_at       INTEGER NOT NULL,
  last_failure_json TEXT,
  started           INTEGER NOT NULL,
  deleted           INTEGER NOT NULL,
  event_seq         INTEGER NOT NULL,
  revision          INTEGER NOT NULL,
  changes           INTEGER NOT NULL,
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL
);
CREATE INDEX deployments_shown ON deployments (deleted, deployment_id);
CREATE INDEX deployments_status ON deployments (deleted, status, deployment_id);
CREATE TABLE deployment_instances (
  run_id         TEXT PRIMARY KEY,
  deployment_id  TEXT NOT NULL,
  runtime_job_id TEXT NOT NULL,
  number         INTEGER NOT NULL,
  version        INTEGER NOT NULL,
  phase          TEXT NOT NULL,
  health         TEXT NOT NULL,
  health_since   INTEGER NOT NULL,
  node           TEXT,
  started_at     INTEGER NOT NULL,
  waits_since    INTEGER NOT NULL,
  serves_since   INTEGER,
  stop_at        INTEGER
);
CREATE INDEX deployment_instances_number ON deployment_instances (deployment_id, number);
CREATE INDEX deployment_instances_unserved ON deployment_instances (run_id) WHERE phase <> 'serving';
CREATE TABLE deployment_events (
  deployment_id TEXT NOT NULL,
  seq           INTEGER NOT NULL,
  line          TEXT NOT NULL,
  PRIMARY KEY (deployment_id, seq)
) WITHOUT ROWID;
CREATE TABLE sessions (
  session_id  TEXT PRIMARY KEY,
  kind        TEXT NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE,
  key_hash    TEXT,
  run_id      TEXT,
  opened_by   TEXT,
  tokens_mark TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_opened ON sessions (opened_by) WHERE opened_by IS NOT NULL;
CREATE INDEX jobs_asking ON jobs (human_pending) WHERE terminal = 0 AND human_pending > 0;
CREATE INDEX human_requests_closed ON human_requests (status, created_at) WHERE status <> 'pending';
CREATE INDEX dead_letters_all ON dead_letters (status, dead_letter_id);
CREATE INDEX runs_blueprint ON runs (blueprint_id, run_id) WHERE blueprint_id IS NOT NULL;
CREATE INDEX runs_rerun ON runs (rerun_of, run_id) WHERE rerun_of IS NOT NULL;
CREATE INDEX runs_trigger ON runs (trigger_kind, run_id) WHERE trigger_kind <> 'api';
CREATE INDEX runs_ends ON runs (status, finished_at) WHERE terminal = 1;
CREATE INDEX agents_failed ON agents (job_id, agent_index) WHERE status = 'failed';
CREATE TABLE models (
  model_id          TEXT PRIMARY KEY,
  name              TEXT NOT NULL,
  family            TEXT,
  source_json       TEXT NOT NULL,
  sha256            TEXT,
  license           TEXT,
  parameters        INTEGER,
  quantisation      TEXT,
  context           INTEGER,
  requirements_json TEXT,
  content_json      TEXT,
  revision          INTEGER NOT NULL,
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL
);
CREATE TABLE model_installations (
  installation_id TEXT PRIMARY KEY,
  model_id        TEXT NOT NULL,
  node_id         TEXT NOT NULL,
  state           TEXT NOT NULL,
  operation_id    TEXT NOT NULL,
  sha256          TEXT,
  bytes           INTEGER NOT NULL,
  pinned          INTEGER NOT NULL,
  error_json      TEXT,
  revision        INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
);
CREATE UNIQUE INDEX model_installations_place ON model_installations (model_id, node_id);
CREATE TABLE served_models (
  model_id      TEXT PRIMARY KEY,
  settings_json TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
);
CREATE TABLE llm_usage (
  run_id   TEXT NOT NULL,
  scope    TEXT NOT NULL,
  requests INTEGER NOT NULL,
  tokens   INTEGER NOT NULL,
  PRIMARY KEY (run_id, scope)
);
INSERT INTO schema_migrations VALUES ('0001-initial.sql');
INSERT INTO schema_migrations VALUES ('0002-gateway.sql');
INSERT INTO schema_migrations VALUES ('0003-evidence.sql');
INSERT INTO schema_migrations VALUES ('0004-blueprints.sql');
INSERT INTO schema_migrations VALUES ('0005-one-principal.sql');
INSERT INTO schema_migrations VALUES ('0006-commit-count.sql');
INSERT INTO schema_migrations VALUES ('0007-row-checksums.sql');
INSERT INTO schema_migrations VALUES ('0008-newest-outputs.sql');
INSERT INTO schema_migrations VALUES ('0009-history-checksums.sql');
INSERT INTO schema_migrations VALUES ('0010-mailboxes.sql');
INSERT INTO schema_migrations VALUES ('0011-ascending-newest.sql');
INSERT INTO schema_migrations VALUES ('0012-brief-jobs.sql');
INSERT INTO schema_migrations VALUES ('0013-owners.sql');
INSERT INTO schema_migrations VALUES ('0014-schedules.sql');
INSERT INTO schema_migrations VALUES ('0015-resources.sql');
INSERT INTO schema_migrations VALUES ('0016-trigger-events.sql');
INSERT INTO schema_migrations VALUES ('0017-run-end-events.sql');
INSERT INTO schema_migrations VALUES ('0017-schema-admits.sql');
INSERT INTO schema_migrations VALUES ('0018-webhooks.sql');
INSERT INTO schema_migrations VALUES ('0019-priorities.sql');
INSERT INTO schema_migrations VALUES ('0020-deployments.sql');
INSERT INTO schema_migrations VALUES ('0021-sessions.sql');
INSERT INTO schema_migrations VALUES ('0022-attention.sql');
INSERT INTO schema_migrations VALUES ('0023-run-list.sql');
INSERT INTO schema_migrations VALUES ('0024-data-schemas.sql');
INSERT INTO schema_migrations VALUES ('0025-changed-letters.sql');
INSERT INTO schema_migrations VALUES ('0026-run-ends.sql');
INSERT INTO schema_migrations VALUES ('0027-failed-agents.sql');
INSERT INTO schema_migrations VALUES ('0028-models.sql');
INSERT INTO schema_migrations VALUES ('0029-served-models.sql');
INSERT INTO commit_count VALUES (1, 0);
INSERT INTO schema_admits VALUES (1, '0017-schema-admits.sql', '0.1.0');
