-- Times are milliseconds since 1970. Columns that end in _json hold JSON text.

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
);
CREATE INDEX jobs_newest ON jobs (submitted_at DESC, job_id DESC);
CREATE INDEX jobs_newest_open ON jobs (submitted_at DESC, job_id DESC) WHERE terminal = 0;
CREATE INDEX jobs_bundle ON jobs (bundle_fingerprint) WHERE bundle_fingerprint IS NOT NULL;

-- What a job was made from: large, written once, read at recovery.
CREATE TABLE job_sources (
  job_id             TEXT PRIMARY KEY,
  manifest_json      TEXT NOT NULL,
  configuration_json TEXT
);

-- The history in segments: each row holds `event_count` lines of JSON, the first with number `first_seq`.
CREATE TABLE events (
  job_id      TEXT NOT NULL,
  first_seq   INTEGER NOT NULL,
  event_count INTEGER NOT NULL,
  lines       TEXT NOT NULL,
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
  lease_json         TEXT,
  PRIMARY KEY (job_id, agent_index)
) WITHOUT ROWID;

-- Messages that wait in a mailbox. A message that came and went within one batch was never here.
CREATE TABLE messages (
  job_id       TEXT NOT NULL,
  agent_index  INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  message_json TEXT NOT NULL,
  PRIMARY KEY (job_id, agent_index, seq)
) WITHOUT ROWID;

-- What aggregators have collected, in segments like events.
CREATE TABLE items (
  job_id      TEXT NOT NULL,
  agent_index INTEGER NOT NULL,
  first_seq   INTEGER NOT NULL,
  lines       TEXT NOT NULL,
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
  message_json TEXT NOT NULL,
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
);
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

-- Files whose rows are gone: removed from disk after the transaction that deleted the rows, and only then from here.
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
