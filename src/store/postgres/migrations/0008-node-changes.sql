-- Nodes that leave for good, and nodes that are expected.
ALTER TABLE nodes
  -- Its program ends once its jobs have gone.
  ADD COLUMN leaves     BIGINT NOT NULL DEFAULT 0,
  -- When the node was removed: it gets no lease any more.
  ADD COLUMN removed_at BIGINT;

-- Nodes that may join with a token.
CREATE TABLE expected_nodes (
  node_id     TEXT COLLATE "C" PRIMARY KEY,
  name        TEXT COLLATE "C" NOT NULL UNIQUE,
  labels_json TEXT COLLATE "C" NOT NULL,
  -- By which the token is known; the token cannot be computed from it.
  verifier    TEXT COLLATE "C" NOT NULL,
  expires_at  BIGINT NOT NULL,
  -- Wrong proofs of the token.
  attempts    BIGINT NOT NULL DEFAULT 0,
  -- The public key of the program that has used the token.
  joiner      TEXT COLLATE "C"
);
