// `troupe logs`: what a run's workers and the runtime logged; all of it, the newest of it, or as it comes.

import type { LogFilters, LogRecord, TroupeClient } from "../../sdk/src/index.ts";
import { logLevels } from "../engine/event-types.ts";
import { type Call, UsageError } from "./command.ts";
import { idKind } from "./ids.ts";
import { durationMs } from "./input.ts";
import { countOf, oneOf, printStream } from "./lists.ts";
import { withNamedRun } from "./named-run.ts";
import { logLine } from "./record-text.ts";
import type { ServerCall } from "./session.ts";
import { cleanText } from "./text.ts";

const PAGE = 200;
/** They are held until the oldest of them is known. */
const TAIL_MAX = 10_000;
const TEXT_CHARS_MAX = 200;

/**
 * `troupe logs`: of a run, or of a job's latest one.
 *
 * @param only the kind of id it takes; either when absent
 */
export function logs(only?: "run"): (call: ServerCall) => Promise<number> {
  return async (call) => {
    const wanted = wantedOf(call);
    const kind = only ?? (idKind(call.words[0] ?? "") === "job" ? "job" : "run");
    return withNamedRun(call, ({ id }) => show(call, id, wanted), kind);
  };
}

interface Wanted {
  readonly filters: LogFilters;
  /** How many of the newest records; null for all. */
  readonly tail: number | null;
  readonly isFollowed: boolean;
}

function show(call: ServerCall, runId: string, wanted: Wanted): Promise<number> {
  const { client } = call;
  const { filters, tail, isFollowed } = wanted;
  const print = (records: AsyncIterable<LogRecord>) =>
    printStream(call, records, (record) => logLine(record, call.terminal.paint));
  if (tail !== null) return print(tailOf(client, runId, { ...wanted, tail }));
  if (isFollowed) return print(client.runs.followLogs(runId, { filters }));
  return print(client.runs.logs(runId, { ...filters, page_size: PAGE }));
}

/** The newest records, oldest first; then, if asked for, those that come. */
async function* tailOf(
  client: TroupeClient,
  runId: string,
  { filters, tail, isFollowed }: Wanted & { readonly tail: number },
): AsyncGenerator<LogRecord, undefined> {
  const newest: LogRecord[] = [];
  let after: number | null = null;
  let token: string | undefined;
  do {
    const query = { ...filters, order: "desc" as const, page_size: Math.min(PAGE, tail), page_token: token };
    const page = await client.runs.logPage(runId, query);
    after ??= page.last_event_id;
    newest.push(...page.items.slice(0, tail - newest.length));
    token = page.next_page_token ?? undefined;
  } while (token !== undefined && newest.length < tail);
  yield* newest.reverse();
  if (isFollowed) yield* client.runs.followLogs(runId, { filters, after });
}

function wantedOf(call: Call): Wanted {
  const nowMs = Date.now();
  const filters = {
    level: oneOf(call, "level", logLevels),
    agent_id: call.text("agent") ?? undefined,
    text: textOf(call),
    since: timeOf(call, "since", nowMs),
    until: timeOf(call, "until", nowMs),
  };
  return {
    filters,
    tail: countOf(call, "tail", { max: TAIL_MAX, example: 100 }),
    isFollowed: call.flag("follow") === true,
  };
}

function textOf(call: Call): string | undefined {
  const text = call.text("text");
  if (text !== null && text.length > TEXT_CHARS_MAX) {
    throw new UsageError(`--text takes ${TEXT_CHARS_MAX} characters at most.`);
  }
  return text ?? undefined;
}

/** A time as the gateway takes it: from an ISO 8601 time, a date, or how long ago it was. */
function timeOf(call: Call, option: string, nowMs: number): string | undefined {
  const text = call.text(option);
  if (text === null) return undefined;
  const agoMs = durationMs(text);
  const isDate = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}.*)?$/.test(text);
  const ms = agoMs === null ? (isDate ? Date.parse(text) : Number.NaN) : nowMs - agoMs;
  if (!Number.isNaN(ms)) return new Date(ms).toISOString();
  throw new UsageError(
    `--${option}: ${JSON.stringify(cleanText(text))} is not a time. Use 30s, 10m, 2h, 3d, or 2026-11-21T09:30:00Z.`,
  );
}
