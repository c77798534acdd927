-- What browsers sign in with (src/security/sessions.ts): sessions, and the links that open them. secret_hash: of the secret by which
-- it is found, which is stored nowhere. run_id: the one run that it reads. opened_by: the link to a run that a session was opened with.
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
