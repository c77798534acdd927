-- Models that are served (src/models/serving), and how.
CREATE TABLE served_models (
  model_id      TEXT PRIMARY KEY,
  settings_json TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
);
-- What workers have asked of models, where their run or their agent has a budget. scope: the agent's id; empty for the run's own.
CREATE TABLE llm_usage (
  run_id   TEXT NOT NULL,
  scope    TEXT NOT NULL,
  requests INTEGER NOT NULL,
  tokens   INTEGER NOT NULL,
  PRIMARY KEY (run_id, scope)
);
