-- How many messages wait in each mailbox, written with them: a mailbox may hold hundreds of thousands, and its depth is
-- asked for all the time.
CREATE TABLE mailboxes (
  job_id      TEXT NOT NULL,
  agent_index INTEGER NOT NULL,
  depth       INTEGER NOT NULL,
  PRIMARY KEY (job_id, agent_index)
) WITHOUT ROWID;
INSERT INTO mailboxes SELECT job_id, agent_index, count(*) FROM messages GROUP BY job_id, agent_index;
