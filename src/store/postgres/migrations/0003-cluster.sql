-- What the programs of one database share: one row, made by the first of them.
CREATE TABLE cluster (
  id             BIGINT PRIMARY KEY CHECK (id = 1),
  -- Of the key that stored secrets are encrypted with; a program that does not have it is refused.
  sealing_key_id TEXT COLLATE "C" NOT NULL,
  -- By which the nodes of one machine know each other.
  node_secret    TEXT COLLATE "C" NOT NULL,
  -- Names the copy of a SQLite database that this one began as; its home has the same name (copy-mark.ts).
  copied_from    TEXT COLLATE "C"
);
