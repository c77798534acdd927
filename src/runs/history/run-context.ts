// What the views of a run's history need to know beside the event: whose run it is.

export interface RunContext {
  readonly runId: string;
  /** W3C trace id: 32 hex digits. */
  readonly traceId: string;
  /** The caller's span, from its traceparent: 16 hex digits; null without one. */
  readonly parentSpanId: string | null;
}

/** Where an artifact's bytes are, on both APIs. */
export function artifactUrl(runId: string, artifactId: string): string {
  return `/api/v1/runs/${encodeURIComponent(runId)}/artifacts/${encodeURIComponent(artifactId)}`;
}
