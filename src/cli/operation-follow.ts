// Following an operation of the gateway to its end.

import type { Operation } from "../../sdk/src/index.ts";
import { exitCodes } from "./command.ts";
import { operationLines, planLines, progressLine } from "./operation-text.ts";
import type { Session } from "./session.ts";
import { cleanText, fit } from "./text.ts";

/**
 * Shows an operation's labels as they come, drawn in place on a screen, then how it ended; with --json only the end.
 *
 * @returns the exit code: 0 completed, 1 failed
 */
export async function followOperation(session: Session, operationId: string): Promise<number> {
  return showEnd(session, await followed(session, operationId));
}

/** The operation once it has ended, its labels shown until then. */
export async function followed({ call, client }: Session, operationId: string): Promise<Operation> {
  const { terminal } = call;
  if (call.flag("json")) return client.operations.wait(operationId);
  let shown = "";
  for await (const { payload } of client.operations.follow(operationId)) {
    const line = progressLine(payload);
    if (line === shown) continue;
    shown = line;
    if (terminal.isScreen) terminal.redraw([fit(line, Math.max(20, terminal.size().columns - 1))]);
    else terminal.note(line);
  }
  terminal.settle();
  return client.operations.get(operationId);
}

export function showEnd({ call }: Session, operation: Operation): number {
  const { terminal } = call;
  const { error } = operation;
  if (call.flag("json")) terminal.print(JSON.stringify(operation));
  else if (error !== null) {
    terminal.note(cleanText(`${error.code}: ${error.detail}`));
  } else for (const line of planLines(operation)) terminal.print(line);
  return error === null ? exitCodes.success : exitCodes.failure;
}

/** Shows an operation as it is, without waiting. */
export function showOperation({ call }: Session, operation: Operation): number {
  if (call.flag("json")) call.terminal.print(JSON.stringify(operation));
  else for (const line of operationLines(operation, call.terminal.paint)) call.terminal.print(line);
  return operation.status === "failed" ? exitCodes.failure : exitCodes.success;
}
