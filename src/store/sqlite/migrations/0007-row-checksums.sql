-- Checksums of the rows that a recovery depends on (row-checksum.ts); null in rows from before.
ALTER TABLE job_sources ADD COLUMN checksum INTEGER;
ALTER TABLE agents ADD COLUMN checksum INTEGER;
ALTER TABLE messages ADD COLUMN checksum INTEGER;
ALTER TABLE items ADD COLUMN checksum INTEGER;
ALTER TABLE tasks ADD COLUMN checksum INTEGER;
