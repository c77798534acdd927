-- Blueprints: what was prepared of them, the operations that do it, and the ports of runs' dashboards.

-- Whether the run has a payload of its own, made of the bundle's and of the files that its user chose.
ALTER TABLE jobs ADD COLUMN own_payload INTEGER NOT NULL DEFAULT 0;

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
);
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

-- A row for each blueprint that is being added, was added, or could not be; what is only in the catalog has none.
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

-- What was prepared for a blueprint and is its own: a row is there before the first byte, and goes after the last one.
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

-- Ports that runs were given. One is in use as long as its run has not ended: nothing has to be given back.
CREATE TABLE run_ports (
  port   INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL,
  label  TEXT NOT NULL
);
CREATE INDEX run_ports_run ON run_ports (run_id);
