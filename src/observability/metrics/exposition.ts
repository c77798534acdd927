// Metrics as Prometheus reads them: its own text format (0.0.4), or OpenMetrics 1.0.

import type { Histogram } from "./histogram.ts";

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}

export interface Sample {
  /** Appended to the metric's name, such as `_bucket`. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export function gauge(name: string, help: string, value: number): Metric {
  return { name, help, kind: "gauge", samples: [{ value }] };
}

export function counter(name: string, help: string, value: number): Metric {
  return { name, help, kind: "counter", samples: [{ value }] };
}

/** A value for each value of a label. */
export function labelled(
  kind: "counter" | "gauge",
  name: string,
  help: string,
  label: string,
  values: Readonly<Record<string, number>>,
): Metric {
  const samples = Object.entries(values).map(([of, value]) => ({ labels: { [label]: of }, value }));
  return { name, help, kind, samples };
}

export function histogram(name: string, help: string, of: Histogram): Metric {
  return { name, help, kind: "histogram", samples: histogramSamples(of) };
}

export function histogramSamples(of: Histogram, labels: Sample["labels"] = {}): readonly Sample[] {
  const { count, sum, cumulative } = of.snapshot();
  const buckets = of.bounds.map((bound, i) => ({ le: String(bound), value: cumulative[i]! }));
  return [
    ...[...buckets, { le: "+Inf", value: count }].map(({ le, value }) => ({
      suffix: "_bucket" as const,
      labels: { ...labels, le },
      value,
    })),
    { suffix: "_sum", labels, value: sum },
    { suffix: "_count", labels, value: count },
  ];
}

export type TextFlavour = "prometheus" | "openmetrics";

export const textTypes: Readonly<Record<TextFlavour, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** @param metrics a counter's name ends in `_total` */
export function metricsText(metrics: readonly Metric[], flavour: TextFlavour): string {
  const lines = metrics.flatMap(({ name, help, kind, samples }) => {
    // OpenMetrics names a counter's family without the suffix of its samples.
    const family = flavour === "openmetrics" && kind === "counter" ? name.replace(/_total$/, "") : name;
    return [
      `# HELP ${family} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${family} ${kind}`,
      ...samples.map(({ suffix = "", labels, value }) => `${name}${suffix}${labelText(labels)} ${value}`),
    ];
  });
  if (flavour === "openmetrics") lines.push("# EOF");
  return `${lines.join("\n")}\n`;
}

function labelText(labels: Sample["labels"] = {}): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escaped = (value: string) =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
