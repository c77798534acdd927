// An event as a run's readers see it: the journal's line with its public ids in front, not parsed.

/** @param line `{"timestamp":…,"type":…,"agent_id":…,"payload":…}`, as the journal keeps it */
export function renderEvent(runId: string, seq: number, line: string): string {
  return `{"id":${seq},"run_id":${JSON.stringify(runId)},${line.slice(1)}`;
}

const NO_AGENT = ',"agent_id":null';

/** The line as the runtime API shows it, not parsed: what happened to the whole job has no `agent_id`. */
export function withoutNullAgent(line: string): string {
  const type = line.indexOf('"type":"');
  const end = line.indexOf('"', type + '"type":"'.length) + 1;
  return line.startsWith(NO_AGENT, end) ? line.slice(0, end) + line.slice(end + NO_AGENT.length) : line;
}
