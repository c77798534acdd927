-- Lists over all runs. Of questions that can be answered, those of the jobs that ask and have not ended; of all that have ended,
-- nothing is read.
CREATE INDEX jobs_asking ON jobs (human_pending) WHERE terminal = 0 AND human_pending > 0;
CREATE INDEX human_requests_closed ON human_requests (status, created_at) WHERE status <> 'pending';
CREATE INDEX dead_letters_all ON dead_letters (status, dead_letter_id);
