-- Rules by which runs of a job are started. version: raised by each change of anything, revision by each change of the
-- definition. next_run_at: when there is something to do; null when there is not.
CREATE TABLE schedules (
  schedule_id           TEXT COLLATE "C" PRIMARY KEY,
  job_id                TEXT COLLATE "C" NOT NULL,
  blueprint_id          TEXT COLLATE "C",
  name                  TEXT COLLATE "C" NOT NULL,
  kind                  TEXT COLLATE "C" NOT NULL,
  status                TEXT COLLATE "C" NOT NULL,
  status_reason         TEXT COLLATE "C",
  rule_json             TEXT COLLATE "C" NOT NULL,
  inputs_json           TEXT COLLATE "C" NOT NULL,
  config_overrides_json TEXT COLLATE "C",
  overlap               TEXT COLLATE "C" NOT NULL,
  missed_policy         TEXT COLLATE "C" NOT NULL,
  catchup_limit         BIGINT NOT NULL,
  until                 BIGINT,
  max_runs              BIGINT,
  pause_after_failures  BIGINT,
  due_at                BIGINT,
  next_run_at           BIGINT,
  queued_due_at         BIGINT,
  last_dispatch_json    TEXT COLLATE "C",
  failures_in_a_row     BIGINT NOT NULL,
  dispatched            BIGINT NOT NULL,
  skipped               BIGINT NOT NULL,
  missed                BIGINT NOT NULL,
  failed                BIGINT NOT NULL,
  revision              BIGINT NOT NULL,
  version               BIGINT NOT NULL,
  created_at            BIGINT NOT NULL,
  updated_at            BIGINT NOT NULL
);
CREATE INDEX schedules_due ON schedules (status, next_run_at, schedule_id);
CREATE INDEX schedules_kind ON schedules (kind, schedule_id);
CREATE INDEX schedules_status ON schedules (status, schedule_id);
CREATE INDEX schedules_job ON schedules (job_id, schedule_id);

-- Runs that schedules have started, until their end was looked at.
CREATE TABLE schedule_runs (
  run_id         TEXT COLLATE "C" PRIMARY KEY,
  schedule_id    TEXT COLLATE "C" NOT NULL,
  runtime_job_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX schedule_runs_schedule ON schedule_runs (schedule_id, run_id);
