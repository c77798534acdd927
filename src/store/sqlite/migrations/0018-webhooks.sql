-- webhook_json: the path at which other programs' signed requests become events, its token and secret encrypted. webhook_hash: of
-- the token, by which it is found.
ALTER TABLE schedules ADD COLUMN webhook_json TEXT;
ALTER TABLE schedules ADD COLUMN webhook_hash TEXT;
CREATE UNIQUE INDEX schedules_webhook ON schedules (webhook_hash) WHERE webhook_hash IS NOT NULL;
