-- Models (src/models): what was registered, and where its content is. source_json: secrets encrypted. content_json: what
-- the content that was installed last says of itself.
CREATE TABLE models (
  model_id          TEXT COLLATE "C" PRIMARY KEY,
  name              TEXT COLLATE "C" NOT NULL,
  family            TEXT COLLATE "C",
  source_json       TEXT COLLATE "C" NOT NULL,
  sha256            TEXT COLLATE "C",
  license           TEXT COLLATE "C",
  parameters        BIGINT,
  quantisation      TEXT COLLATE "C",
  context           BIGINT,
  requirements_json TEXT COLLATE "C",
  content_json      TEXT COLLATE "C",
  revision          BIGINT NOT NULL,
  created_at        BIGINT NOT NULL,
  updated_at        BIGINT NOT NULL
);

-- At most one of a model on a node.
CREATE TABLE model_installations (
  installation_id TEXT COLLATE "C" PRIMARY KEY,
  model_id        TEXT COLLATE "C" NOT NULL,
  node_id         TEXT COLLATE "C" NOT NULL,
  state           TEXT COLLATE "C" NOT NULL,
  operation_id    TEXT COLLATE "C" NOT NULL,
  sha256          TEXT COLLATE "C",
  bytes           BIGINT NOT NULL,
  pinned          BIGINT NOT NULL,
  error_json      TEXT COLLATE "C",
  revision        BIGINT NOT NULL,
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL
);
CREATE UNIQUE INDEX model_installations_place ON model_installations (model_id, node_id);
