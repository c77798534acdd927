// `troupe console`: links to the console, and the sessions that were opened with them.

import { type Session, TroupeProblem } from "../../sdk/src/index.ts";
import { printAnswer, UsageError } from "./command.ts";
import { idOf } from "./ids.ts";
import { limitOf, printList } from "./lists.ts";
import { ago } from "./record-text.ts";
import type { ServerCall } from "./session.ts";

/** Prints where the console is; with what signs a browser in, where that is needed. */
export async function open(call: ServerCall): Promise<number> {
  const link = await call.client.sessions.create({ kind: "link" }).catch((error: unknown) => {
    if (error instanceof TroupeProblem && error.code === "conflict") return null;
    throw error;
  });
  if (link !== null) return printLink(call, link, "It signs one browser in, within a minute.");
  const url = urlOf(call, "/console");
  return printAnswer(call, { url }, () => url);
}

/** Prints a link to a run. */
export async function share(call: ServerCall): Promise<number> {
  const runId = idOf(call, "run");
  const days = daysOf(call.text("days"));
  const made = await call.client.sessions.create({ kind: "share", run_id: runId, days });
  const note = `Everybody who has it may see this run until ${made.expires_at}. \`troupe console end ${made.session_id}\` ends it.`;
  return printLink(call, made, note);
}

export function sessions(call: ServerCall): Promise<number> {
  return printList<Session>(call, {
    limit: limitOf(call),
    items: (pageSize) => call.client.sessions.list({ page_size: pageSize }),
    head: ["SESSION", "KIND", "SHOWS", "MADE", "ENDS"],
    row: (session) => [
      session.session_id,
      session.kind,
      session.run_id ?? "everything",
      ago(session.created_at),
      session.expires_at,
    ],
    nothing: "Nobody has signed in, and there are no links.",
  });
}

export async function end(call: ServerCall): Promise<number> {
  const [sessionId = ""] = call.words;
  await call.client.sessions.end(sessionId);
  return printAnswer(call, { session_id: sessionId }, () => `Ended ${sessionId}.`);
}

function printLink(call: ServerCall, made: Session, note: string): number {
  const url = urlOf(call, made.path ?? "/console");
  if (!call.flag("json")) call.terminal.note(note);
  return printAnswer(call, { ...made, url }, () => url);
}

/** @param path on the gateway, beside /api/v1 */
const urlOf = ({ client }: ServerCall, path: string) => client.baseUrl.replace(/\/api\/v1\/?$/, path);

function daysOf(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text);
  throw new UsageError(`--days takes a whole number from 1 to 365, not ${text}.`);
}
