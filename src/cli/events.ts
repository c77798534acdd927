// `troupe events`: a job's history, as lines for people or one JSON object per line.

import { type Call, exitCodes } from "./command.ts";
import { clientFor } from "./connection.ts";
import { eventLine } from "./event-text.ts";
import { listenForInterrupts } from "./interrupts.ts";
import type { HistoryEvent } from "./wire.ts";

export async function events(call: Call): Promise<number> {
  const jobId = call.words[0] ?? "";
  const show = printer(call);
  if (!call.flag("follow")) {
    for (const event of await clientFor(call).events(jobId)) show(event);
    return exitCodes.success;
  }
  const interrupts = listenForInterrupts(() => process.exit(exitCodes.interrupted));
  try {
    for await (const event of clientFor(call, interrupts.signal).follow(jobId)) show(event);
    return exitCodes.success;
  } catch (error) {
    if (interrupts.signal.aborted) return exitCodes.interrupted;
    throw error;
  } finally {
    interrupts.release();
  }
}

function printer(call: Call): (event: HistoryEvent) => void {
  const { terminal } = call;
  if (!call.flag("json")) return (event) => terminal.print(eventLine(event, terminal.paint));
  return ({ sequence, raw }) => terminal.print(JSON.stringify({ sequence, ...(raw as object) }));
}
