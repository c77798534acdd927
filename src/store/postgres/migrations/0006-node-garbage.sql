-- Files that are garbage in the home of one node: another one has removed its own, and this one has not yet. kind and name
-- are those of the table garbage.
CREATE TABLE node_garbage (
  node_id TEXT COLLATE "C" NOT NULL REFERENCES nodes ON DELETE CASCADE,
  kind    TEXT COLLATE "C" NOT NULL,
  name    TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (node_id, kind, name)
);
