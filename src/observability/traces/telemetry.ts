// Export of traces, from the feed to the collector. Off unless OTEL_* variables ask for it (settings.ts).

import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { EventFeed } from "../../runs/feed.ts";
import { OtlpOutlet, otelVariables } from "./otlp-outlet.ts";
import { DEFAULT_SERVICE_NAME, type Env, type ExportSettings } from "./settings.ts";
import { SpanSender } from "./span-sender.ts";
import { type TracedJobs, TraceFeed } from "./trace-feed.ts";

export interface TelemetryParts {
  readonly settings: ExportSettings;
  /** Where the OTEL_* variables are. */
  readonly env: Env;
  readonly feed: EventFeed;
  readonly records: TracedJobs;
  readonly clock: Clock;
  readonly log: EngineLog;
  readonly version: string;
}

export interface Telemetry {
  /** Sends what has happened so far, for as long as it is given. May be called twice. */
  close(limitMs: number): Promise<void>;
}

/** Begins to export: whatever is published from now on. */
export function startTelemetry(parts: TelemetryParts): Telemetry {
  const { settings, env, clock, log } = parts;
  const { sampler, shownUrl, queueMax, batchMax, delayMs } = settings;
  const thread = { sampler, serviceName: DEFAULT_SERVICE_NAME, serviceVersion: parts.version };
  const outlet = new OtlpOutlet(thread, otelVariables(env), log);
  const sender = new SpanSender({ outlet, clock, log, shownUrl, queueMax, batchMax, delayMs });
  const traces = new TraceFeed({ records: parts.records, handOn: sender.add, log });
  const stopListening = parts.feed.subscribeAll(traces.published);
  return {
    async close(limitMs) {
      stopListening();
      const untilMs = clock.steadyMs() + limitMs;
      let cancel = () => {};
      const isLate = new Promise<void>((resolve) => {
        cancel = clock.after(limitMs, resolve);
      });
      await Promise.race([traces.idle(), isLate]);
      cancel();
      traces.stop();
      await sender.close(Math.max(0, untilMs - clock.steadyMs()));
    },
  };
}
