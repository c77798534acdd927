-- The first version that knows the migration which a program must know; older ones are refused by its name.
ALTER TABLE schema_admits ADD COLUMN version TEXT COLLATE "C" NOT NULL DEFAULT '0.1.0';
