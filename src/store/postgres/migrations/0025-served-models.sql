-- Models that are served (src/models/serving), and how.
CREATE TABLE served_models (
  model_id      TEXT COLLATE "C" PRIMARY KEY,
  settings_json TEXT COLLATE "C" NOT NULL,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL
);
-- What workers have asked of models, where their run or their agent has a budget. scope: the agent's id; empty for the run's own.
CREATE TABLE llm_usage (
  run_id   TEXT COLLATE "C" NOT NULL,
  scope    TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  tokens   BIGINT NOT NULL,
  PRIMARY KEY (run_id, scope)
);
