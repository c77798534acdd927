// The code of the exporter's thread, and the only file that imports OpenTelemetry: spans become the SDK's, those that
// the sampler keeps go to its batch processor and its exporter. Where to, with which headers, how long: that the SDK
// reads from OTEL_* itself.

import { parentPort, workerData } from "node:worker_threads";
import {
  type Context,
  DiagLogLevel,
  diag,
  type HrTime,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";
import type { ExportSettings, SamplerSettings } from "./settings.ts";
import type { FinishedSpan } from "./span.ts";

/** What the thread is started with. */
export interface ThreadSettings
  extends Pick<ExportSettings, "sampler" | "queueMax" | "batchMax" | "delayMs"> {
  readonly serviceName: string;
  readonly serviceVersion: string;
}

export type ThreadCommand =
  | { readonly kind: "spans"; readonly spans: readonly FinishedSpan[] }
  | { readonly kind: "flush" };

/** What happened to spans, including those that are not sampled; or something for the log. */
export type ThreadReport =
  | { readonly kind: "sent"; readonly spans: number }
  | { readonly kind: "lost"; readonly spans: number; readonly reason: string }
  | { readonly kind: "warning"; readonly text: string };

const settings = workerData as ThreadSettings;
const WARNING_CHARS_MAX = 500;
const WARNINGS_MAX = 20;

const report = (message: ThreadReport) => parentPort?.postMessage(message);

let warnings = 0;
const warn = (...words: readonly unknown[]) => {
  if (warnings++ < WARNINGS_MAX)
    report({ kind: "warning", text: words.map(String).join(" ").slice(0, WARNING_CHARS_MAX) });
};
const silent = () => {};
diag.setLogger(
  { error: warn, warn, info: silent, debug: silent, verbose: silent },
  { logLevel: DiagLogLevel.WARN },
);

const resource = defaultResource()
  .merge(
    resourceFromAttributes({
      "service.name": settings.serviceName,
      "service.version": settings.serviceVersion,
    }),
  )
  .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }));

const instrumentationScope = { name: settings.serviceName, version: settings.serviceVersion };
const sampler = toSampler(settings.sampler);

function toSampler({ name, ratio }: SamplerSettings): Sampler {
  const root = rootSampler(name.replace(/^parentbased_/, ""), ratio);
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: string, ratio: number): Sampler {
  if (name === "always_off") return new AlwaysOffSampler();
  return name === "traceidratio" ? new TraceIdRatioBasedSampler(ratio) : new AlwaysOnSampler();
}

/** What is kept is decided by the trace, so that a run is sent whole or not at all. */
function isKept({ traceId, spanId, isCallersTrace, name }: FinishedSpan): boolean {
  // Samplers only check whether a trace was started elsewhere, not by which span; a caller's trace counts as kept.
  const context: Context = isCallersTrace
    ? trace.setSpanContext(ROOT_CONTEXT, spanContext(traceId, spanId, true))
    : ROOT_CONTEXT;
  const { decision } = sampler.shouldSample(context, traceId, name, SpanKind.INTERNAL, {}, []);
  return decision === SamplingDecision.RECORD_AND_SAMPLED;
}

function spanContext(traceId: string, spanId: string, isRemote: boolean): SpanContext {
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote };
}

const toHrTime = (ms: number): HrTime => [Math.floor(ms / 1_000), (ms % 1_000) * 1_000_000];

function toReadable(span: FinishedSpan): ReadableSpan {
  const { traceId, spanId, parentSpanId, startMs, endMs, error } = span;
  const own = spanContext(traceId, spanId, false);
  return {
    name: span.name,
    kind: SpanKind.INTERNAL,
    spanContext: () => own,
    ...(parentSpanId !== null && {
      parentSpanContext: spanContext(traceId, parentSpanId, span.isParentRemote),
    }),
    startTime: toHrTime(startMs),
    endTime: toHrTime(endMs),
    duration: toHrTime(endMs - startMs),
    ended: true,
    status: error === null ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes: span.attributes,
    events: span.events.map(({ name, atMs, attributes }) => ({ name, time: toHrTime(atMs), attributes })),
    links: [],
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: span.droppedEvents,
    droppedLinksCount: 0,
  };
}

const { queueMax, batchMax, delayMs } = settings;
// Closing sends all batches together.
const otlp = new OTLPTraceExporter({ concurrencyLimit: Math.ceil(queueMax / batchMax) + 1 });
const reporting: SpanExporter = {
  export(spans, done) {
    otlp.export(spans, ({ code, error }) => {
      // 0 is success. The processor always gets it: for a failure it would write a second log line.
      if (code === 0) report({ kind: "sent", spans: spans.length });
      else {
        const reason = error?.message || "the collector rejected them";
        report({ kind: "lost", spans: spans.length, reason });
      }
      done({ code: 0 });
    });
  },
  shutdown: () => otlp.shutdown(),
};
const processor = new BatchSpanProcessor({
  exporter: reporting,
  maxQueueSize: queueMax,
  maxExportBatchSize: batchMax,
  scheduledDelayMillis: delayMs,
});

parentPort?.on("message", (command: ThreadCommand) => {
  if (command.kind === "flush") {
    void processor.forceFlush();
    return;
  }
  const kept = command.spans.filter(isKept);
  if (kept.length < command.spans.length) report({ kind: "sent", spans: command.spans.length - kept.length });
  for (const span of kept) processor.onEnd(toReadable(span));
});
