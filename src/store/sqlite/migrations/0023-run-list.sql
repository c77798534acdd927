-- By which runs are listed: their job's blueprint, and the run that each repeats. Ids are ordered by time, so they end each index.
ALTER TABLE runs ADD COLUMN blueprint_id TEXT;
ALTER TABLE runs ADD COLUMN rerun_of TEXT;
UPDATE runs SET blueprint_id = (SELECT d.blueprint_id FROM job_definitions AS d WHERE d.job_id = runs.job_id);
CREATE INDEX runs_blueprint ON runs (blueprint_id, run_id) WHERE blueprint_id IS NOT NULL;
CREATE INDEX runs_rerun ON runs (rerun_of, run_id) WHERE rerun_of IS NOT NULL;
CREATE INDEX runs_trigger ON runs (trigger_kind, run_id) WHERE trigger_kind <> 'api';
