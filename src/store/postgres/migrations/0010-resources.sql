-- How much of each machine commands may have: one row, once somebody has set limits.
CREATE TABLE resource_limits (
  id          BIGINT PRIMARY KEY,
  limits_json TEXT COLLATE "C" NOT NULL,
  revision    BIGINT NOT NULL
);

-- What a node has, what commands may have of it, what is reserved for them, and what is used; null of one that does not tell.
ALTER TABLE nodes ADD COLUMN resources_json TEXT COLLATE "C";
