-- Newer jobs come last in the index, as in the table: pages of an index that grows at its other end stay half empty. Lists
-- of the newest jobs read it backwards.
DROP INDEX jobs_newest;
DROP INDEX jobs_newest_open;
CREATE INDEX jobs_newest ON jobs (submitted_at, job_id);
CREATE INDEX jobs_newest_open ON jobs (submitted_at, job_id) WHERE terminal = 0;
