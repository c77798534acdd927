-- Of one producer and name the newest file is the output (journal.ts): what it replaced is one of the artifacts.
CREATE INDEX artifacts_output_names ON artifacts (run_id, agent_id, name, artifact_id) WHERE kind = 'output';
UPDATE artifacts SET kind = 'artifact'
  WHERE kind = 'output' AND EXISTS (
    SELECT 1 FROM artifacts AS newer INDEXED BY artifacts_output_names
    WHERE newer.kind = 'output' AND newer.run_id = artifacts.run_id AND newer.agent_id IS artifacts.agent_id
      AND newer.name = artifacts.name AND newer.artifact_id > artifacts.artifact_id
  );
