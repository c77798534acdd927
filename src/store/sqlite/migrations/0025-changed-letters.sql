-- What a dead letter was changed to when it was sent again, as {principal, body}; NULL: it was sent as it was.
ALTER TABLE dead_letters ADD COLUMN change_json TEXT;
