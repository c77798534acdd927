-- Instances of service graphs that are kept running and replaced (src/deployments). versions_json: oldest first. changes: raised
-- by each change of anything, revision by each change that the owner makes.
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

-- The instances of deployments: runs, until they have ended. Others find the services of those in phase serving alone.
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

-- The newest events of deployments.
CREATE TABLE deployment_events (
  deployment_id TEXT NOT NULL,
  seq           INTEGER NOT NULL,
  line          TEXT NOT NULL,
  PRIMARY KEY (deployment_id, seq)
) WITHOUT ROWID;
