// `troupe operations`: long-running work of the gateway, such as the addition of a blueprint; its progress and outcome.

import type { Operation } from "../../sdk/src/index.ts";
import { isObject, type JsonValue } from "../engine/json.ts";
import { type Call, exitCodes, printAnswer } from "./command.ts";
import { idOf } from "./ids.ts";
import { limitOf, oneOf, printList } from "./lists.ts";
import { ago, fieldLines } from "./record-text.ts";
import type { ServerCall } from "./session.ts";
import { bytes, cleanText, fit, plural } from "./text.ts";

const statuses: readonly Operation["status"][] = ["pending", "running", "completed", "failed"];

export async function operations(call: ServerCall): Promise<number> {
  if (call.words[0] === undefined) return list(call);
  const operationId = idOf(call, "operation");
  if (call.flag("follow")) return showEnd(call, await followed(call, operationId));
  return showOperation(call, await call.client.operations.get(operationId));
}

function list(call: ServerCall): Promise<number> {
  const query = { target: call.text("blueprint") ?? undefined, status: oneOf(call, "status", statuses) };
  return printList<Operation>(call, {
    limit: limitOf(call),
    items: (pageSize) => call.client.operations.list({ ...query, page_size: pageSize }),
    head: ["OPERATION", "STATUS", "DONE", "ASKED FOR", "WHAT"],
    row: (operation) => [
      operation.operation_id,
      operation.status,
      `${operation.progress.percent} %`,
      ago(operation.created_at),
      whatOf(operation),
    ],
    nothing: "No operations. `troupe blueprint add <blueprint-id>` begins one.",
  });
}

/** The operation once it has ended; its labels are shown until then, drawn in place on a screen, but not with --json. */
export async function followed(call: ServerCall, operationId: string): Promise<Operation> {
  const { terminal, client } = call;
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

/** Follows an operation that a command has begun, unless --no-wait is given. @returns the exit code */
export async function ending(call: ServerCall, operationId: string): Promise<number> {
  if (call.flag("wait") !== false) return showEnd(call, await followed(call, operationId));
  return showOperation(call, await call.client.operations.get(operationId));
}

/** How an operation ended. @returns the exit code: 0 completed, 1 failed */
export function showEnd(call: Call, operation: Operation): number {
  const { error } = operation;
  if (error !== null && !call.flag("json")) call.terminal.note(cleanText(`${error.code}: ${error.detail}`));
  printAnswer(call, operation, () => (error === null ? planLines(operation) : []));
  return error === null ? exitCodes.success : exitCodes.failure;
}

/** Shows an operation as it is, without waiting. */
export function showOperation(call: Call, operation: Operation): number {
  printAnswer(call, operation, () => operationLines(operation));
  return operation.status === "failed" ? exitCodes.failure : exitCodes.success;
}

/** "42 %  Copying the package" */
function progressLine({ percent, label }: Pick<Operation["progress"], "percent" | "label">): string {
  return `${String(percent).padStart(3)} %  ${cleanText(label)}`;
}

function operationLines(operation: Operation): readonly string[] {
  const { progress, error } = operation;
  return [
    ...fieldLines([
      ["Operation", operation.operation_id],
      ["What", whatOf(operation)],
      ["Status", operation.status],
      ["Progress", progressLine(progress).trim()],
      ["Asked for", ago(operation.created_at)],
      ["Error", error && `${error.code}: ${error.detail}`],
    ]),
    ...progress.steps.map((step) => `  ${step.status.padEnd(10)} ${cleanText(step.label)}`),
    ...planLines(operation),
  ];
}

const names = {
  blueprint_addition: "addition of",
  blueprint_removal: "removal of",
  node_removal: "removal of",
  node_leave: "departure of",
  node_join: "joining of",
  model_installation: "installation of",
  model_update: "update of",
  model_removal: "removal of",
  model_serving: "serving of",
} as const satisfies Record<Operation["kind"], string>;

function whatOf({ kind, target }: Pick<Operation, "kind" | "target">): string {
  return `${names[kind]} ${cleanText(target)}`;
}

interface PlannedItem {
  readonly kind: string;
  readonly id: string;
  readonly bytes: number;
  readonly action: string;
}

/** What a removal has removed, or would remove; nothing for other operations. */
export function planLines({ result }: Pick<Operation, "result">): readonly string[] {
  const shown = (result ?? {}) as Readonly<Record<string, JsonValue>>;
  const isPreview = isObject(shown.preview);
  const plan = isPreview ? shown.preview : shown.removed;
  if (!isObject(plan)) return [];
  const items = (Array.isArray(plan.resources) ? plan.resources : []) as readonly unknown[] as PlannedItem[];
  const going = items.filter(({ action }) => action === "delete");
  const staying = items.filter(({ action }) => action !== "delete");
  const nothing = isPreview ? "No files would be removed." : "No files were removed.";
  const freed = `${bytes(Number(plan.bytes_freed))} of files ${isPreview ? "would be" : "were"} freed.`;
  const jobs = Number(plan.jobs_affected);
  const users = Array.isArray(plan.used_by) ? plan.used_by.map((one) => cleanText(String(one))) : [];
  return [
    ...(going.length === 0
      ? [nothing]
      : [isPreview ? "Would be removed:" : "Removed:", ...going.map(itemLine)]),
    ...(staying.length === 0 ? [] : [isPreview ? "Would be kept:" : "Kept:", ...staying.map(itemLine)]),
    ...(going.length === 0 ? [] : [freed]),
    ...(users.length === 0 ? [] : [`${isPreview ? "Needed" : "Was needed"} by ${users.join(", ")}.`]),
    ...(jobs === 0 ? [] : [`${plural(jobs, "job")} made from it ${jobs === 1 ? "stays" : "stay"}.`]),
  ];
}

function itemLine({ kind, id, bytes: size, action }: PlannedItem): string {
  const isUsed = kind === "package" && action !== "delete";
  const why = isUsed ? ": still used by its jobs or an uploaded bundle" : "";
  return `  ${kind} ${kind === "package" ? id.slice(0, 12) : cleanText(id)}, ${bytes(size)}${why}`;
}
