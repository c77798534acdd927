// `troupe blueprint list` and `show`: what the catalog of the gateway holds.

import type { Blueprint, BlueprintDetail } from "../../sdk/src/index.ts";
import { type Call, exitCodes } from "./command.ts";
import { blueprintIdOf } from "./ids.ts";
import { printList } from "./lists.ts";
import { ago, fieldLines } from "./record-text.ts";
import { withGateway } from "./session.ts";
import type { Paint, Style } from "./terminal.ts";
import { bytes, cleanText } from "./text.ts";

export async function list(call: Call): Promise<number> {
  const query = { category: call.text("category") ?? undefined, q: call.text("text") ?? undefined };
  return withGateway(call, ({ client }) =>
    printList<Blueprint>(
      call,
      {
        items: (pageSize) => client.blueprints.list({ ...query, page_size: pageSize }),
        head: ["BLUEPRINT", "STATE", "VERSION", "CATEGORY", "NAME"],
        row: (one) => [
          cleanText(one.blueprint_id),
          one.modified ? `${one.state}, modified` : one.state,
          cleanText(one.version ?? "-"),
          cleanText(one.category ?? "-"),
          cleanText(one.name),
        ],
        nothing: "No blueprints. SVC_BLUEPRINT_CATALOG of the gateway names the folders that hold them.",
      },
      null,
    ),
  );
}

export async function show(call: Call): Promise<number> {
  const id = blueprintIdOf(call);
  return withGateway(call, async ({ client }) => {
    const { terminal } = call;
    const found = await client.blueprints.get(id);
    if (call.flag("json")) terminal.print(JSON.stringify(found));
    else for (const line of blueprintLines(found, terminal.paint)) terminal.print(line);
    return exitCodes.success;
  });
}

const styles: Readonly<Partial<Record<Blueprint["state"], Style>>> = {
  added: "green",
  adding: "cyan",
  removing: "cyan",
  failed: "red",
  broken: "red",
};

function blueprintLines(found: BlueprintDetail, paint: Paint): readonly string[] {
  const style = styles[found.state];
  const optional: readonly (readonly [string, string | null])[] = [
    ["Version", found.version],
    ["Category", found.category],
    ["About", found.description || null],
    ["Added", found.added_at === null ? null : ago(found.added_at)],
    ["Operation", found.operation_id],
    ["Jobs", found.jobs === 0 ? null : String(found.jobs)],
  ];
  const given = optional.flatMap(([name, value]) =>
    value === null ? [] : [[name, cleanText(value)] as const],
  );
  return [
    ...fieldLines([
      ["Blueprint", cleanText(found.blueprint_id)],
      ["Name", cleanText(found.name)],
      [
        "State",
        (style === undefined ? found.state : paint(style, found.state)) +
          (found.modified ? ", modified" : ""),
      ],
      ...given,
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

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}

function findingLine({ path, message }: { readonly path: string; readonly message: string }): string {
  return cleanText(path === "" ? message : `${path}: ${message}`);
}
