-- What browsers sign in with (src/security/sessions.ts): sessions, and the links that open them. secret_hash: of the secret by which
-- it is found, which is stored nowhere. run_id: the one run that it reads. opened_by: the link to a run that a session was opened with.
CREATE TABLE sessions (
  session_id  TEXT COLLATE "C" PRIMARY KEY,
  kind        TEXT COLLATE "C" NOT NULL,
  secret_hash TEXT COLLATE "C" NOT NULL UNIQUE,
  key_hash    TEXT COLLATE "C",
  run_id      TEXT COLLATE "C",
  opened_by   TEXT COLLATE "C",
  tokens_mark TEXT COLLATE "C" NOT NULL,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_opened ON sessions (opened_by) WHERE opened_by IS NOT NULL;
