-- How much of the machine commands may have: one row, once somebody has set limits.
CREATE TABLE resource_limits (
  id          INTEGER PRIMARY KEY,
  limits_json TEXT NOT NULL,
  revision    INTEGER NOT NULL
);
