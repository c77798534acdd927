// Metrics as Prometheus reads them: its own text format (0.0.4), or OpenMetrics 1.0.

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}

export interface Sample {
  /** Behind the metric's name, such as `_bucket`. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
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
