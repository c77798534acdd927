// Operations for people: as they go on, and what they have come to.

import type { Operation } from "../../sdk/src/index.ts";
import { isObject, type JsonValue } from "../engine/json.ts";
import { ago, fieldLines } from "./record-text.ts";
import type { Paint, Style } from "./terminal.ts";
import { bytes, cleanText, plural } from "./text.ts";

/** "42 %  Copying the package" */
export function progressLine({ percent, label }: Pick<Operation["progress"], "percent" | "label">): string {
  return `${String(percent).padStart(3)} %  ${cleanText(label)}`;
}

const styles: Readonly<Record<Operation["status"], Style>> = {
  pending: "blue",
  running: "cyan",
  completed: "green",
  failed: "red",
};

export function operationLines(operation: Operation, paint: Paint): readonly string[] {
  const { progress, error, status } = operation;
  const fields: readonly (readonly [string, string])[] = [
    ["Operation", cleanText(operation.operation_id)],
    ["What", whatOf(operation)],
    ["Status", paint(styles[status], status)],
    ["Progress", progressLine(progress).trim()],
    ["Asked for", ago(operation.created_at)],
    ...(error === null ? [] : ([["Error", `${error.code}: ${cleanText(error.detail)}`]] as const)),
  ];
  const steps = progress.steps.map((step) => `  ${step.status.padEnd(10)} ${cleanText(step.label)}`);
  return [...fieldLines(fields), ...steps, ...planLines(operation)];
}

export function whatOf({ kind, target }: Pick<Operation, "kind" | "target">): string {
  return `${kind === "blueprint_addition" ? "addition" : "removal"} of ${cleanText(target)}`;
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
  const nothing = isPreview ? "No files would go." : "No files were removed.";
  const freed = `${bytes(Number(plan.bytes_freed))} of files ${isPreview ? "would be" : "were"} freed.`;
  const jobs = Number(plan.jobs_affected);
  return [
    ...(going.length === 0 ? [nothing] : [isPreview ? "This would go:" : "Removed:", ...going.map(itemLine)]),
    ...(staying.length === 0 ? [] : [isPreview ? "This would stay:" : "Kept:", ...staying.map(itemLine)]),
    ...(going.length === 0 ? [] : [freed]),
    ...(jobs === 0 ? [] : [`${plural(jobs, "job")} made from it ${jobs === 1 ? "stays" : "stay"}.`]),
  ];
}

function itemLine({ kind, id, bytes: size, action }: PlannedItem): string {
  const isUsed = kind === "package" && action !== "delete";
  const why = isUsed ? ": jobs of it, or an uploaded bundle, still have it" : "";
  return `  ${kind} ${kind === "package" ? id.slice(0, 12) : cleanText(id)}, ${bytes(size)}${why}`;
}
