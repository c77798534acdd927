-- What a job has of slots for which others wait, too (src/engine/share.ts). Rows from before have what is the default.
ALTER TABLE jobs ADD COLUMN priority TEXT NOT NULL DEFAULT 'normal';
ALTER TABLE jobs ADD COLUMN weight INTEGER NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN priority TEXT NOT NULL DEFAULT 'normal';
ALTER TABLE job_definitions ADD COLUMN weight INTEGER NOT NULL DEFAULT 1;
ALTER TABLE schedules ADD COLUMN priority TEXT NOT NULL DEFAULT 'normal';
