// A collector of traces for tests: an OTLP/HTTP receiver on loopback that keeps what it is sent.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it came over the wire, its lists of attributes as objects. */
export interface SeenSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  /** 0 unset, 1 ok, 2 error. */
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: SeenAttributes;
  readonly events: readonly {
    readonly name: string;
    readonly atMs: number;
    readonly attributes: SeenAttributes;
  }[];
  readonly resource: SeenAttributes;
}

export type SeenAttributes = Readonly<Record<string, string | number | boolean>>;

/** How the collector answers: with a status, or not at all until it is told otherwise. */
export type Answering = number | "never";

export interface Collector {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly port: number;
  /** What it has taken, in order of arrival. */
  readonly spans: readonly SeenSpan[];
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  answering: Answering;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** @param port 0 for any free one */
export async function startCollector(port = 0): Promise<Collector> {
  const spans: SeenSpan[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const held = new Set<ServerResponse>();
  const server = createServer(async (request, response) => {
    let text = "";
    try {
      for await (const chunk of request.setEncoding("utf8")) text += chunk;
    } catch {
      // The program was ended in the middle of sending.
      return;
    }
    requests.push({ path: request.url ?? "", headers: request.headers });
    if (collector.answering === "never") {
      held.add(response);
      return;
    }
    if (collector.answering === 200) spans.push(...spansOf(JSON.parse(text) as WireRequest));
    response.writeHead(collector.answering, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address() as AddressInfo;
  const stop = async () => {
    for (const response of held) response.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const collector: Collector = {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    spans,
    requests,
    answering: 200,
    stop,
    [Symbol.asyncDispose]: stop,
  };
  return collector;
}

interface WireAttribute {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: number | string;
    readonly doubleValue?: number;
    readonly boolValue?: boolean;
  };
}

interface WireRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly WireAttribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly name: string;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly status: SeenSpan["status"];
        readonly attributes: readonly WireAttribute[];
        readonly events: readonly {
          readonly name: string;
          readonly timeUnixNano: string;
          readonly attributes: readonly WireAttribute[];
        }[];
      }[];
    }[];
  }[];
}

function spansOf({ resourceSpans }: WireRequest): SeenSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? null,
        name: span.name,
        startMs: toMs(span.startTimeUnixNano),
        endMs: toMs(span.endTimeUnixNano),
        status: span.status,
        attributes: toObject(span.attributes),
        events: span.events.map(({ name, timeUnixNano, attributes }) => ({
          name,
          atMs: toMs(timeUnixNano),
          attributes: toObject(attributes),
        })),
        resource: toObject(resource.attributes),
      })),
    ),
  );
}

const toMs = (nanoseconds: string) => Number(BigInt(nanoseconds) / 1_000_000n);

function toObject(attributes: readonly WireAttribute[]): SeenAttributes {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { stringValue, intValue, doubleValue, boolValue } = value;
      const number = intValue === undefined ? doubleValue : Number(intValue);
      return [key, stringValue ?? number ?? boolValue ?? ""];
    }),
  );
}
