// An event as a run's readers see it: the journal's line with its public ids in front, not parsed.

/** @param line `{"timestamp":…,"type":…,"agent_id":…,"payload":…}`, as the journal keeps it */
export function renderEvent(runId: string, seq: number, line: string): string {
  return `{"id":${seq},"run_id":${JSON.stringify(runId)},${line.slice(1)}`;
}
