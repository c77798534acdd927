// The level that a printed line gives itself. Stdout and stderr are streams: neither says how urgent a line is.
//
// - It is told once, when the line becomes an event: so filters, counts, histograms and the saved log all have the same, and
//   no reader pays for it. It costs a line half a microsecond, its event some tens of them.
// - A line that names no level, in a place where loggers name it, is info.
// - The cost of a line is bounded, whatever is in it.

import { type LogLevel, logLevelOf } from "../../engine/event-types.ts";

/** Where loggers name their level. */
const LOOKED_AT_CHARS = 200;
/** Of lines of JSON, which may have other fields first. */
const JSON_CHARS = 8 * 1024;

const WORDS =
  "trace|verbose|debug|info|information|notice|warn|warning|err|error|severe|critical|fatal|alert|emergency|emerg|panic";
const UPPER_WORDS = WORDS.toUpperCase();

/** pino, bunyan, zap, Python's and Go's JSON loggers, Google's severity, ECS. */
const JSON_LEVEL = /"(?:level|severity|lvl|levelname|log\.level)"\s*:\s*(?:"([^"\\]{1,20})"|(\d{1,3})\b)/;

const TEXT_LEVELS: readonly RegExp[] = [
  // logfmt and Go's slog: level=info msg=…
  /(?:^|\s)(?:level|severity|lvl)="?([A-Za-z]{1,20})\b/,
  // error: …, [warn] …, <info> …, error[E0308]: …
  new RegExp(`^[\\s[(<]{0,4}(${WORDS})\\s{0,4}[\\])>:|!\\[]`, "i"),
  // INFO …, [ERROR/main] …
  new RegExp(`^[\\s[(<]{0,4}(${UPPER_WORDS})(?![\\w-])`),
  // After a time: 2026-11-22 10:00:00,123 - name - WARNING - …, [2026-11-22T10:00:00Z INFO name] …
  new RegExp(`^[\\s[(]{0,4}\\d.{0,120}?[\\s[(<|:](${UPPER_WORDS})(?=[\\s\\])>:|,/-]|$)`),
  // 2026/11/22 10:00:00 [error] 12#0: …
  new RegExp(`^[\\s[(]{0,4}\\d.{0,120}?[[(<](${WORDS})[\\])>]`, "i"),
];

const UNNAMED: readonly (readonly [RegExp, LogLevel])[] = [
  // Kubernetes: E1122 10:00:00.000000 …
  [/^I\d{4} \d\d:/, "info"],
  [/^W\d{4} \d\d:/, "warn"],
  [/^E\d{4} \d\d:/, "error"],
  [/^F\d{4} \d\d:/, "fatal"],
  // (node:12) ExperimentalWarning: …, main.py:3: DeprecationWarning: …
  [/^(?:\(node:\d+\) (?:\[\w+\] )?|\S{1,100}:\d+: )\w*Warning:/, "warn"],
  // The line of an error that nobody caught: TypeError: …, json.decoder.JSONDecodeError: …
  [/^(?:Uncaught )?[\w.]{0,100}(?:Error|Exception)(?::|$)/, "error"],
];

const ESCAPE = "\u001b";
const COLOURS = new RegExp(`${ESCAPE}\\[[\\d;]{0,20}m`, "g");

/** The level that a line names, or `info`. */
export function levelOfLine(line: string): LogLevel {
  if (line.startsWith("{")) {
    const named = JSON_LEVEL.exec(line.slice(0, JSON_CHARS));
    if (named !== null) return logLevelOf(named[1] ?? Number(named[2]));
  }
  const head = line.slice(0, LOOKED_AT_CHARS);
  const text = head.includes(ESCAPE) ? head.replace(COLOURS, "") : head;
  for (const pattern of TEXT_LEVELS) {
    const named = pattern.exec(text);
    if (named !== null) return logLevelOf(named[1]);
  }
  return UNNAMED.find(([pattern]) => pattern.test(text))?.[1] ?? "info";
}
