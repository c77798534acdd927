-- Which node has a volume, whose files are in its home.
CREATE TABLE volumes (
  name    TEXT COLLATE "C" PRIMARY KEY,
  node_id TEXT COLLATE "C" NOT NULL REFERENCES nodes (node_id) ON DELETE CASCADE
);
CREATE INDEX volumes_of_node ON volumes (node_id);
