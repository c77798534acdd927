// What the views of a run's history need to know beside the event: whose run it is.

export interface RunContext {
  readonly runId: string;
  /** W3C trace id: 32 hex digits. */
  readonly traceId: string;
}

/** Where an artifact's bytes are, on both APIs. */
export function artifactUrl(runId: string, artifactId: string): string {
  return `/api/v1/runs/${encodeURIComponent(runId)}/artifacts/${encodeURIComponent(artifactId)}`;
}
