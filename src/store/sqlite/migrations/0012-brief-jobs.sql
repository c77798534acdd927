-- A brief job began and ended within one batch: its row has all that it ever was, and events, agents and job_sources have
-- nothing of it (brief-jobs.ts). Null in rows of other jobs, and of all jobs from before.
ALTER TABLE jobs ADD COLUMN brief_checksum INTEGER;
ALTER TABLE jobs ADD COLUMN brief_lines TEXT;
ALTER TABLE jobs ADD COLUMN brief_agents_json TEXT;
ALTER TABLE jobs ADD COLUMN brief_manifest_json TEXT;
