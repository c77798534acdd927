-- Models (src/models): what was registered, and where its content is. source_json: secrets encrypted. content_json: what
-- the content that was installed last says of itself.
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

-- At most one of a model on a node.
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
