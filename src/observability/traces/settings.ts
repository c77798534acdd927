// Whether and where traces are exported: the standard OTEL_* variables, read once.
//
// - Nothing is exported unless an endpoint is named.
// - An invalid value never prevents the start: the default is used, or
//   nothing is exported, with a warning.
// - Headers and passwords in addresses are never shown.

export type Env = Readonly<Record<string, string | undefined>>;

/** How many of the traces are kept: the SDK's samplers, by the names that the specification gives them. */
export interface SamplerSettings {
  readonly name: string;
  /** From 0 to 1; only used by the ratio samplers. */
  readonly ratio: number;
}

export interface ExportSettings {
  readonly kind: "on";
  /** Where spans are posted, with the path, as people may see it. */
  readonly shownUrl: string;
  readonly sampler: SamplerSettings;
  /** Spans that may wait; more are dropped. */
  readonly queueMax: number;
  readonly batchMax: number;
  /** How long a span may wait for others to be sent with it. */
  readonly delayMs: number;
  readonly warnings: readonly string[];
}

export interface NoExport {
  readonly kind: "off";
  /** Why, as half a sentence. */
  readonly reason: string;
  readonly warnings: readonly string[];
}

export type TelemetrySettings = ExportSettings | NoExport;

export const DEFAULT_SERVICE_NAME = "troupe";
const DEFAULT_SAMPLER = "parentbased_always_on";

const samplerNames: readonly string[] = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
];

/** @example readTelemetry({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }) */
export function readTelemetry(env: Env): TelemetrySettings {
  const warnings: string[] = [];
  const off = (reason: string): NoExport => ({ kind: "off", reason, warnings });
  if (textOf(env, "OTEL_SDK_DISABLED")?.toLowerCase() === "true") return off("OTEL_SDK_DISABLED is true");
  const ofTraces = textOf(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  const variable = `OTEL_EXPORTER_OTLP_${ofTraces === null ? "" : "TRACES_"}ENDPOINT`;
  const endpoint = ofTraces ?? textOf(env, "OTEL_EXPORTER_OTLP_ENDPOINT");
  if (endpoint === null) return off("OTEL_EXPORTER_OTLP_ENDPOINT is not set");
  const exporters = (textOf(env, "OTEL_TRACES_EXPORTER") ?? "otlp").split(",").map((name) => name.trim());
  if (!exporters.includes("otlp")) return off(`OTEL_TRACES_EXPORTER is ${exporters.join(",")}`);
  const url = httpUrl(endpoint);
  if (url === null) {
    warnings.push(`${variable} is not an http or https address. Example: ${variable}=http://127.0.0.1:4318`);
    return off(`${variable} is not an address`);
  }
  warnOfProtocol(env, warnings);
  const batchMax = whole(
    env,
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    { fallback: 256, min: 1, max: 2_048 },
    warnings,
  );
  return {
    kind: "on",
    shownUrl: shownUrl(url, ofTraces === null ? "v1/traces" : ""),
    sampler: readSampler(env, warnings),
    queueMax: whole(
      env,
      "OTEL_BSP_MAX_QUEUE_SIZE",
      { fallback: 20_000, min: batchMax, max: 200_000 },
      warnings,
    ),
    batchMax,
    delayMs: whole(env, "OTEL_BSP_SCHEDULE_DELAY", { fallback: 1_000, min: 1, max: 60_000 }, warnings),
    warnings,
  };
}

/** An empty variable counts as unset. */
function textOf(env: Env, name: string): string | null {
  return env[name]?.trim() || null;
}

function httpUrl(text: string): URL | null {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) ? url : null;
}

function shownUrl(url: URL, path: string): string {
  const shown = new URL(url);
  if (shown.username !== "") shown.username = MASK;
  if (shown.password !== "") shown.password = MASK;
  shown.search = "";
  if (path !== "") shown.pathname = `${shown.pathname.replace(/\/$/, "")}/${path}`;
  return shown.href;
}

function warnOfProtocol(env: Env, warnings: string[]): void {
  const names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
  const name = names.find((one) => textOf(env, one) !== null);
  if (name === undefined || textOf(env, name) === "http/json") return;
  warnings.push(
    `${name}: traces are sent as http/json, whatever its value; the collector's port is usually 4318.`,
  );
}

function readSampler(env: Env, warnings: string[]): SamplerSettings {
  const name = textOf(env, "OTEL_TRACES_SAMPLER") ?? DEFAULT_SAMPLER;
  if (!samplerNames.includes(name)) {
    warnings.push(
      `OTEL_TRACES_SAMPLER is not one of ${samplerNames.join(", ")}: ${DEFAULT_SAMPLER} is used.`,
    );
    return { name: DEFAULT_SAMPLER, ratio: 1 };
  }
  const given = textOf(env, "OTEL_TRACES_SAMPLER_ARG");
  if (given === null || !name.endsWith("traceidratio")) return { name, ratio: 1 };
  const ratio = Number(given);
  if (ratio >= 0 && ratio <= 1) return { name, ratio };
  warnings.push("OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: all traces are kept.");
  return { name, ratio: 1 };
}

interface Range {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

function whole(env: Env, name: string, { fallback, min, max }: Range, warnings: string[]): number {
  const given = textOf(env, name);
  if (given === null) return Math.max(fallback, min);
  const value = Number(given);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  warnings.push(`${name} is not a whole number from ${min} to ${max}: ${fallback} is used.`);
  return Math.max(fallback, min);
}

// ------------------------------------------------------------------------------------ what people are shown

const MASK = "********";

/** One row of `troupe config`. */
export interface TelemetryRow {
  readonly variable: string;
  readonly value: string;
  readonly from: "default" | "environment";
  readonly meaning: string;
}

interface Shown {
  readonly variable: string;
  readonly meaning: string;
  readonly fallback: string;
  readonly show?: (value: string) => string;
}

const UNSET = "(unset)";

const rows: readonly Shown[] = [
  {
    variable: "OTEL_EXPORTER_OTLP_ENDPOINT",
    meaning:
      "Collector that traces are sent to, as OTLP over HTTP, below /v1/traces; unset: nothing is sent.",
    fallback: UNSET,
    show: maskedUrl,
  },
  {
    variable: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    meaning: "The same for traces alone: the whole address, path included.",
    fallback: UNSET,
    show: maskedUrl,
  },
  {
    variable: "OTEL_EXPORTER_OTLP_HEADERS",
    meaning: "Headers that the collector is sent: name=value, separated by commas.",
    fallback: UNSET,
    show: maskedPairs,
  },
  {
    variable: "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    meaning: "The same for traces alone.",
    fallback: UNSET,
    show: maskedPairs,
  },
  {
    variable: "OTEL_SERVICE_NAME",
    meaning: "What traces call this program.",
    fallback: DEFAULT_SERVICE_NAME,
  },
  {
    variable: "OTEL_RESOURCE_ATTRIBUTES",
    meaning: "Further words about this program in traces: name=value, separated by commas.",
    fallback: UNSET,
  },
  {
    variable: "OTEL_TRACES_SAMPLER",
    meaning: "Which traces are sent; by ratio with OTEL_TRACES_SAMPLER_ARG.",
    fallback: DEFAULT_SAMPLER,
  },
  { variable: "OTEL_TRACES_EXPORTER", meaning: "otlp, or none.", fallback: "otlp" },
  {
    variable: "OTEL_SDK_DISABLED",
    meaning: "true: nothing is sent, whatever else is set.",
    fallback: "false",
  },
];

/** The variables as `troupe config` prints them, in the same shape as those of the table, with secrets masked. */
export function describeTelemetry(env: Env): readonly TelemetryRow[] {
  return rows.map(({ variable, meaning, fallback, show = (value) => value }) => {
    const given = textOf(env, variable);
    return {
      variable,
      value: given === null ? fallback : show(given),
      from: given === null ? "default" : "environment",
      meaning,
    };
  });
}

/** One line about whether traces are exported. */
export function telemetryLine(env: Env): string {
  const settings = readTelemetry(env);
  return settings.kind === "on"
    ? `Traces are sent to ${settings.shownUrl}.`
    : `Traces are not exported: ${settings.reason}.`;
}

function maskedUrl(text: string): string {
  const url = httpUrl(text);
  return url === null ? MASK : shownUrl(url, "");
}

function maskedPairs(text: string): string {
  const names = text.split(",").map((pair) => pair.split("=", 1)[0]!.trim());
  return names.map((name) => `${name}=${MASK}`).join(",");
}
