// Export of traces, from the feed to the collector. Off unless OTEL_* variables enable it (settings.ts).

import type { EventFeed } from "../../runs/feed.ts";
import { SpanExporter, type SpanExporterParts } from "./exporter.ts";
import { type TracedJobs, TraceFeed } from "./trace-feed.ts";

export interface TelemetryParts extends SpanExporterParts {
  readonly feed: EventFeed;
  readonly records: TracedJobs;
}

export interface Telemetry {
  /** Sends what has happened so far, for as long as it is given. May be called twice. */
  close(limitMs: number): Promise<void>;
}

/** Starts to export what is published from now on. */
export function startTelemetry(parts: TelemetryParts): Telemetry {
  const { feed, records, clock, log } = parts;
  const exporter = new SpanExporter(parts);
  const traces = new TraceFeed({ records, emit: exporter.add, log });
  const stopListening = feed.subscribeAll(traces.published);
  return {
    async close(limitMs) {
      stopListening();
      const { promise: isLate, resolve } = Promise.withResolvers<void>();
      const cancel = clock.after(limitMs, resolve);
      await Promise.race([traces.idle(), isLate]);
      traces.stop();
      await exporter.close(isLate);
      cancel();
    },
  };
}
