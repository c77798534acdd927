-- Rules by which runs of a job are started. version: raised by each change of anything, revision by each change of the
-- definition. next_run_at: when there is something to do; null when there is not.
CREATE TABLE schedules (
  schedule_id           TEXT PRIMARY KEY,
  job_id                TEXT NOT NULL,
  blueprint_id          TEXT,
  name                  TEXT NOT NULL,
  kind                  TEXT NOT NULL,
  status                TEXT NOT NULL,
  status_reason         TEXT,
  rule_json             TEXT NOT NULL,
  inputs_json           TEXT NOT NULL,
  config_overrides_json TEXT,
  overlap               TEXT NOT NULL,
  missed_policy         TEXT NOT NULL,
  catchup_limit         INTEGER NOT NULL,
  until                 INTEGER,
  max_runs              INTEGER,
  pause_after_failures  INTEGER,
  due_at                INTEGER,
  next_run_at           INTEGER,
  queued_due_at         INTEGER,
  last_dispatch_json    TEXT,
  failures_in_a_row     INTEGER NOT NULL,
  dispatched            INTEGER NOT NULL,
  skipped               INTEGER NOT NULL,
  missed                INTEGER NOT NULL,
  failed                INTEGER NOT NULL,
  revision              INTEGER NOT NULL,
  version               INTEGER NOT NULL,
  created_at            INTEGER NOT NULL,
  updated_at            INTEGER NOT NULL
);
CREATE INDEX schedules_due ON schedules (status, next_run_at, schedule_id);
CREATE INDEX schedules_kind ON schedules (kind, schedule_id);
CREATE INDEX schedules_status ON schedules (status, schedule_id);
CREATE INDEX schedules_job ON schedules (job_id, schedule_id);

-- Runs that schedules have started, until their end was looked at.
CREATE TABLE schedule_runs (
  run_id         TEXT PRIMARY KEY,
  schedule_id    TEXT NOT NULL,
  runtime_job_id TEXT NOT NULL
);
CREATE INDEX schedule_runs_schedule ON schedule_runs (schedule_id, run_id);
