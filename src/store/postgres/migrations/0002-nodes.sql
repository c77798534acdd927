-- The programs that share the database, and until when, by its clock, each has the jobs that are its own.
CREATE TABLE nodes (
  node_id        TEXT COLLATE "C" PRIMARY KEY,
  -- One stretch of work of the node; what it has taken on carries this name.
  owner          TEXT COLLATE "C" NOT NULL,
  name           TEXT COLLATE "C" NOT NULL,
  -- host:port where other nodes reach it.
  address        TEXT COLLATE "C",
  version        TEXT COLLATE "C" NOT NULL,
  status         TEXT COLLATE "C" NOT NULL,
  labels_json    TEXT COLLATE "C" NOT NULL,
  pools_json     TEXT COLLATE "C" NOT NULL,
  totals_json    TEXT COLLATE "C" NOT NULL,
  reserved_json  TEXT COLLATE "C" NOT NULL,
  jobs_owned     BIGINT NOT NULL,
  tasks_running  BIGINT NOT NULL,
  started_at     BIGINT NOT NULL,
  heartbeat_at   BIGINT NOT NULL,
  lease_until    BIGINT NOT NULL,
  -- The nodes that it could reach when it last tried.
  connected_json TEXT COLLATE "C" NOT NULL DEFAULT '[]'
);

-- The owners of open jobs, and each one's, oldest first.
CREATE INDEX jobs_owner ON jobs (owner, submitted_at, job_id) WHERE terminal = 0;
