-- By which the agents that failed in some runs are found.
CREATE INDEX agents_failed ON agents (job_id, agent_index) WHERE status = 'failed';
