-- How many commits the database holds; the file beside it (commit-counter.ts) says how many were acknowledged.
CREATE TABLE commit_count (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  commits INTEGER NOT NULL
);
INSERT INTO commit_count VALUES (1, 0);
