-- What an operator has asked of a node: that its jobs leave it until a time by the database's clock, and that it stays without
-- work also when its program starts again (maintenance).
ALTER TABLE nodes
  ADD COLUMN drain_until         BIGINT,
  ADD COLUMN drain_services_last BIGINT NOT NULL DEFAULT 1,
  ADD COLUMN drain_requested_at  BIGINT,
  ADD COLUMN maintenance         BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN maintenance_reason  TEXT COLLATE "C",
  -- What the node says of its drain.
  ADD COLUMN services_owned      BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN jobs_moved          BIGINT NOT NULL DEFAULT 0;
