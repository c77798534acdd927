-- Which programs may use this schema: those that know this migration. One that admits older programs leaves it as it is.
CREATE TABLE schema_admits (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  -- The newest migration that a program must know.
  oldest  TEXT NOT NULL,
  -- The first version that knows it.
  version TEXT NOT NULL
) STRICT;
INSERT INTO schema_admits VALUES (1, '0017-schema-admits.sql', '0.1.0');
