-- Until when the attempts may run that the node's former owners have begun on other nodes: the end of their leases, though a
-- later owner has replaced them.
ALTER TABLE nodes ADD COLUMN former_until BIGINT NOT NULL DEFAULT 0;
