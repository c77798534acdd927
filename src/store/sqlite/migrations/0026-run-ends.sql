-- By which ended runs are counted for each hour.
CREATE INDEX runs_ends ON runs (status, finished_at) WHERE terminal = 1;
