-- end_told: 1 once the end of a run was told as a trigger event. Of runs that have ended before it is not told.
ALTER TABLE runs ADD COLUMN end_told BIGINT NOT NULL DEFAULT 1;
UPDATE runs SET end_told = 0 WHERE terminal = 0;
CREATE INDEX runs_end_untold ON runs (run_id) WHERE terminal = 1 AND end_told = 0;

-- depth: how many runs have led to the event, each started by the end of the one before.
ALTER TABLE trigger_events ADD COLUMN depth BIGINT NOT NULL DEFAULT 0;
CREATE INDEX event_matches_run ON event_matches (run_id) WHERE run_id IS NOT NULL;
