-- The program that has taken on a run which is not launched yet, or an operation. Null: the only one there is.
ALTER TABLE runs ADD COLUMN owner TEXT;
ALTER TABLE operations ADD COLUMN owner TEXT;

-- A port is one of a node's: '' is the only one there is.
CREATE TABLE ports (
  node   TEXT NOT NULL,
  port   INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  label  TEXT NOT NULL,
  PRIMARY KEY (node, port)
) WITHOUT ROWID;
INSERT INTO ports SELECT '', port, run_id, label FROM run_ports;
DROP TABLE run_ports;
ALTER TABLE ports RENAME TO run_ports;
CREATE INDEX run_ports_run ON run_ports (run_id);
