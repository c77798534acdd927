// `troupe blueprint list`, `show`, `add`, `remove` and `run`: what the catalog of the gateway holds.

import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { Blueprint, BlueprintDetail, BlueprintRemoval } from "../../sdk/src/index.ts";
import { priorities } from "../engine/share.ts";
import { exitCodes, printAnswer, UsageError } from "./command.ts";
import { idOf } from "./ids.ts";
import { overridesOf, readObject } from "./input.ts";
import { oneOf, printList } from "./lists.ts";
import { gatewayRun } from "./named-run.ts";
import { ending, followed, planLines, showEnd } from "./operations.ts";
import { ago, fieldLines } from "./record-text.ts";
import type { ServerCall } from "./session.ts";
import { bytes, cleanText } from "./text.ts";
import { started, watchesAsked, watchLaunch } from "./watching.ts";

export async function list(call: ServerCall): Promise<number> {
  const query = { category: call.text("category") ?? undefined, q: call.text("text") ?? undefined };
  return printList<Blueprint>(call, {
    items: (pageSize) => call.client.blueprints.list({ ...query, page_size: pageSize }),
    head: ["BLUEPRINT", "STATE", "VERSION", "CATEGORY", "NAME"],
    row: (one) => [one.blueprint_id, stateOf(one), one.version ?? "-", one.category ?? "-", one.name],
    nothing: "No blueprints. SVC_BLUEPRINT_CATALOG of the gateway names the folders that hold them.",
  });
}

export async function show(call: ServerCall): Promise<number> {
  const found = await call.client.blueprints.get(idOf(call, "blueprint"));
  return printAnswer(call, found, () => blueprintLines(found));
}

export async function add(call: ServerCall): Promise<number> {
  const force = call.flag("force") === true;
  const operation = await call.client.blueprints.add(idOf(call, "blueprint"), { force });
  return ending(call, operation.operation_id);
}

export async function remove(call: ServerCall): Promise<number> {
  const id = idOf(call, "blueprint");
  const removal: BlueprintRemoval = {
    keep_resources: call.flag("keep-resources") === true,
    keep_models: call.flag("keep-models") === true,
  };
  const isPreview = call.flag("dry-run") === true;
  const mayAsk = call.terminal.isScreen && process.stdin.isTTY === true && call.flag("json") !== true;
  if (!isPreview && call.flag("yes") !== true && !mayAsk) {
    throw new UsageError(
      "A removal deletes what was prepared for the blueprint, and adding it again makes it anew. Look at --dry-run, then give --yes.",
    );
  }
  const { blueprints } = call.client;
  if (isPreview || call.flag("yes") !== true) {
    const { operation_id: previewId } = await blueprints.remove(id, { ...removal, dry_run: true });
    const preview = await followed(call, previewId);
    if (isPreview || preview.error !== null) return showEnd(call, preview);
    for (const line of planLines(preview)) call.terminal.print(line);
    if (!(await isConfirmed(call))) {
      call.terminal.note("Nothing was removed.");
      return exitCodes.failure;
    }
  }
  const operation = await blueprints.remove(id, removal);
  return ending(call, operation.operation_id);
}

async function isConfirmed({ interrupt }: ServerCall): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // The end of the input answers nothing, and is a no.
    const ended = once(asking, "close").then(() => "");
    const answer = await Promise.race([asking.question("Remove it? [y/N] ", { signal: interrupt }), ended]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    asking.close();
  }
}

/** The gateway adds and prepares what is needed first; the run waits for it, and shows so. */
export async function run(call: ServerCall): Promise<number> {
  const id = idOf(call, "blueprint");
  const launch = {
    inputs: readObject(call, "input"),
    config_overrides: overridesOf(call),
    name: call.text("name") ?? undefined,
    priority: oneOf(call, "priority", priorities),
  };
  const watches = watchesAsked(call, true);
  const { client } = call;
  if (call.flag("refresh") === true) {
    const { operation_id: operationId } = await client.blueprints.add(id, { force: true });
    const addition = await followed(call, operationId);
    if (addition.error !== null) return showEnd(call, addition);
  }
  const { run_id: runId, job_id: jobId, warnings } = await client.blueprints.run(id, launch);
  for (const { code, message } of warnings) {
    const hint = code === "folder_changed" ? `; \`troupe blueprint run ${id} --refresh\` adds it first` : "";
    call.terminal.note(cleanText(`Warning: ${message}${hint}.`));
  }
  if (!watches) return started(call, runId, await client.runs.get(runId));
  if (!call.flag("json")) {
    call.terminal.print(cleanText(`Job ${jobId}`));
    call.terminal.print(cleanText(`Run ${runId}`));
  }
  return watchLaunch(call, gatewayRun(call, runId));
}

function blueprintLines(found: BlueprintDetail): readonly string[] {
  return [
    ...fieldLines([
      ["Blueprint", found.blueprint_id],
      ["Name", found.name],
      ["State", stateOf(found)],
      ["Version", found.version],
      ["Category", found.category],
      ["About", found.description || null],
      ["Added", found.added_at && ago(found.added_at)],
      ["Operation", found.operation_id],
      ["Jobs", found.jobs === 0 ? null : found.jobs],
    ]),
    ...section(
      "Owns",
      found.owns.map(({ kind, id, bytes: size, ready }) => {
        const name = kind === "package" ? id.slice(0, 12) : cleanText(id);
        return `${kind} ${name}, ${bytes(size)}${ready ? "" : ", not whole"}`;
      }),
    ),
    ...section(
      "Takes folders",
      found.local_inputs.map((one) => cleanText(one.config_path)),
    ),
    ...section("Errors", found.errors.map(findingLine)),
    ...section("Warnings", found.warnings.map(findingLine)),
  ];
}

const stateOf = ({ state, modified }: Blueprint) => (modified ? `${state}, modified` : state);

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}

function findingLine({ path, message }: { readonly path: string; readonly message: string }): string {
  return cleanText(path === "" ? message : `${path}: ${message}`);
}
