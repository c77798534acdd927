-- The program that has taken on a run which is not launched yet, or an operation: nodes.owner, or null for whoever comes.
ALTER TABLE runs ADD COLUMN owner TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN owner TEXT COLLATE "C";

CREATE INDEX runs_waiting ON runs (owner, run_id) WHERE terminal = 0 AND launched = 0;

-- A port is one of a node's.
ALTER TABLE run_ports ADD COLUMN node TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE run_ports DROP CONSTRAINT run_ports_pkey, ADD PRIMARY KEY (node, port);

-- What one node at a time does for all, and until when it is that one's.
CREATE TABLE duties (
  name  TEXT COLLATE "C" PRIMARY KEY,
  owner TEXT COLLATE "C" NOT NULL,
  until BIGINT NOT NULL
);
