-- Checksums of a job's own row and of its history (row-checksum.ts); null in rows from before.
ALTER TABLE jobs ADD COLUMN fixed_checksum INTEGER;
ALTER TABLE jobs ADD COLUMN progress_checksum INTEGER;
ALTER TABLE events ADD COLUMN checksum INTEGER;
