-- Instances of service graphs that are kept running and replaced (src/deployments). versions_json: oldest first. changes: raised
-- by each change of anything, revision by each change that the owner makes.
CREATE TABLE deployments (
  deployment_id     TEXT COLLATE "C" PRIMARY KEY,
  name              TEXT COLLATE "C" NOT NULL,
  count             BIGINT NOT NULL,
  strategy_json     TEXT COLLATE "C" NOT NULL,
  version           BIGINT NOT NULL,
  versions_json     TEXT COLLATE "C" NOT NULL,
  last_version      BIGINT NOT NULL,
  status            TEXT COLLATE "C" NOT NULL,
  stable_json       TEXT COLLATE "C",
  rolling_back      BIGINT NOT NULL,
  promoted          BIGINT NOT NULL,
  progress_at       BIGINT NOT NULL,
  last_failure_json TEXT COLLATE "C",
  started           BIGINT NOT NULL,
  deleted           BIGINT NOT NULL,
  event_seq         BIGINT NOT NULL,
  revision          BIGINT NOT NULL,
  changes           BIGINT NOT NULL,
  created_at        BIGINT NOT NULL,
  updated_at        BIGINT NOT NULL
);
CREATE INDEX deployments_shown ON deployments (deleted, deployment_id);
CREATE INDEX deployments_status ON deployments (deleted, status, deployment_id);

-- The instances of deployments: runs, until they have ended. Others find the services of those in phase serving alone.
CREATE TABLE deployment_instances (
  run_id         TEXT COLLATE "C" PRIMARY KEY,
  deployment_id  TEXT COLLATE "C" NOT NULL,
  runtime_job_id TEXT COLLATE "C" NOT NULL,
  number         BIGINT NOT NULL,
  version        BIGINT NOT NULL,
  phase          TEXT COLLATE "C" NOT NULL,
  health         TEXT COLLATE "C" NOT NULL,
  health_since   BIGINT NOT NULL,
  node           TEXT COLLATE "C",
  started_at     BIGINT NOT NULL,
  waits_since    BIGINT NOT NULL,
  serves_since   BIGINT,
  stop_at        BIGINT
);
CREATE INDEX deployment_instances_number ON deployment_instances (deployment_id, number);
CREATE INDEX deployment_instances_unserved ON deployment_instances (run_id) WHERE phase <> 'serving';

-- The newest events of deployments.
CREATE TABLE deployment_events (
  deployment_id TEXT COLLATE "C" NOT NULL,
  seq           BIGINT NOT NULL,
  line          TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (deployment_id, seq)
);
