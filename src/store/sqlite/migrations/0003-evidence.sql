-- What is told about a run beside its events: its trace, what its history amounts to, what it asks of people.

-- '' stands for the trace that follows from the run's id.
ALTER TABLE jobs ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN parent_span_id TEXT;
ALTER TABLE jobs ADD COLUMN tally_json TEXT NOT NULL DEFAULT '{}';
ALTER TABLE jobs ADD COLUMN human_pending INTEGER NOT NULL DEFAULT 0;
-- Characters of the history and bytes of the artifacts, for retention by size.
ALTER TABLE jobs ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;
-- Retention looks at what has ended, oldest end first, without reading the rows.
CREATE INDEX jobs_ended ON jobs (updated_at, job_id, stored_bytes) WHERE terminal = 1;

ALTER TABLE runs ADD COLUMN parent_span_id TEXT;
-- What goes on stays in the trace that its run was given; for what has ended, the run's own row tells.
UPDATE jobs SET trace_id = r.trace_id FROM runs AS r
  WHERE jobs.terminal = 0 AND jobs.definition_id IS NOT NULL AND r.runtime_job_id = jobs.job_id;
-- Those that never came to the runtime; the others end with their jobs.
CREATE INDEX runs_ended_unlaunched ON runs (finished_at, run_id) WHERE terminal = 1 AND launched = 0;

-- Whether somebody still has a bundle's snapshot: an open job, or one that ended after a given time.
DROP INDEX jobs_bundle;
CREATE INDEX jobs_bundle_open ON jobs (bundle_fingerprint) WHERE terminal = 0 AND bundle_fingerprint IS NOT NULL;
CREATE INDEX jobs_bundle_ended ON jobs (bundle_fingerprint, updated_at, job_id)
  WHERE terminal = 1 AND bundle_fingerprint IS NOT NULL;
CREATE INDEX bundles_fingerprint ON bundles (fingerprint);
CREATE INDEX job_definitions_fingerprint ON job_definitions (bundle_fingerprint);

CREATE TABLE human_requests (
  job_id              TEXT NOT NULL,
  event_seq           INTEGER NOT NULL,
  request_id          TEXT NOT NULL,
  agent_id            TEXT NOT NULL,
  task_seq            INTEGER,
  prompt              TEXT NOT NULL,
  allowed_json        TEXT NOT NULL,
  default_action      TEXT,
  status              TEXT NOT NULL,
  created_at          INTEGER NOT NULL,
  expires_at          INTEGER,
  response_json       TEXT,
  PRIMARY KEY (job_id, event_seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX human_requests_id ON human_requests (job_id, request_id);
CREATE INDEX human_requests_status ON human_requests (job_id, status, event_seq);

ALTER TABLE dead_letters ADD COLUMN status TEXT NOT NULL DEFAULT 'open';
ALTER TABLE dead_letters ADD COLUMN retried_at INTEGER;
CREATE INDEX dead_letters_status ON dead_letters (job_id, status, dead_letter_id);

-- The files that users came for; asked for with the very same words.
CREATE INDEX artifacts_final ON artifacts (run_id, artifact_id)
  WHERE (name GLOB 'final_artifact.*' OR name GLOB '*/final_artifact.*');
