-- What has happened outside, in the order of its coming. event_id: of the sender, or of this program.
CREATE TABLE trigger_events (
  seq          BIGINT PRIMARY KEY,
  event_id     TEXT COLLATE "C" NOT NULL UNIQUE,
  type         TEXT COLLATE "C" NOT NULL,
  source       TEXT COLLATE "C",
  payload_json TEXT COLLATE "C" NOT NULL,
  received_at  BIGINT NOT NULL
);
CREATE INDEX trigger_events_type ON trigger_events (type, seq);
CREATE INDEX trigger_events_source ON trigger_events (source, seq);
CREATE INDEX trigger_events_type_source ON trigger_events (type, source, seq);

-- What schedules have made of events. skipped: what the sender was answered; null: with the run. waiting: 1 until there is a
-- run, or a reason why there is none.
CREATE TABLE event_matches (
  seq         BIGINT NOT NULL,
  schedule_id TEXT COLLATE "C" NOT NULL,
  skipped     TEXT COLLATE "C",
  run_id      TEXT COLLATE "C",
  reason      TEXT COLLATE "C",
  waiting     BIGINT NOT NULL,
  PRIMARY KEY (seq, schedule_id)
);
CREATE INDEX event_matches_waiting ON event_matches (schedule_id, seq) WHERE waiting = 1;

-- event_type: what schedules of kind event react to. waiting_events: events that runs are still to be started for, and the
-- bytes of their payloads. throttled_until: events start no runs before.
ALTER TABLE schedules ADD COLUMN event_type TEXT COLLATE "C";
ALTER TABLE schedules ADD COLUMN waiting_events BIGINT NOT NULL DEFAULT 0;
ALTER TABLE schedules ADD COLUMN waiting_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE schedules ADD COLUMN throttled_until BIGINT;
CREATE INDEX schedules_event_type ON schedules (event_type, status, schedule_id) WHERE event_type IS NOT NULL;
