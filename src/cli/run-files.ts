// The files of runs: `troupe runs artifacts`, `outputs` and `save`.

import { type Artifact, addressOf, type Output, type TroupeClient } from "../../sdk/src/index.ts";
import { printAnswer } from "./command.ts";
import { idOf } from "./ids.ts";
import { printList } from "./lists.ts";
import { gatewayRun, placed, type RunFile } from "./named-run.ts";
import { checkSaveFolder, downloadInto } from "./save.ts";
import type { ServerCall } from "./session.ts";
import { bytes, cleanText } from "./text.ts";

const FILES_PAGE = 200;

export async function artifacts(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const isEvidence = call.flag("evidence") === true;
  const { client } = call;
  return printList<Artifact>(call, {
    items: (pageSize) =>
      isEvidence
        ? evidenceOf(client, id)
        : client.runs.artifacts(id, { evidence: false, page_size: pageSize }),
    head: ["NAME", isEvidence ? "ID" : "KIND", "FROM", "SIZE", "LINK"],
    row: (file) => [
      file.name,
      isEvidence ? file.artifact_id : file.kind,
      file.producer,
      bytes(file.size),
      addressOf(client.baseUrl, file.url),
    ],
    nothing: "No files.",
    ...(!isEvidence &&
      call.terminal.isScreen && { hint: "Its events, logs, errors and timeline as files: --evidence" }),
  });
}

export async function outputs(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const { client } = call;
  return printList<Output>(call, {
    items: (pageSize) => client.runs.outputs(id, { page_size: pageSize }),
    head: ["NAME", "TITLE", "FROM", "SIZE", "LINK"],
    row: (file) => [
      file.name,
      file.title,
      file.producer,
      bytes(file.size),
      addressOf(client.baseUrl, file.url),
    ],
    nothing: `No outputs. \`troupe runs artifacts ${id}\` lists every file.`,
  });
}

export async function save(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const [, folder = ""] = call.words;
  checkSaveFolder(call, folder);
  const { client } = call;
  const run = gatewayRun(call, id);
  const query = { evidence: false, page_size: FILES_PAGE };
  const left = call.flag("all") ? await Array.fromAsync(client.runs.artifacts(id, query)) : await run.files();
  const records = call.flag("evidence") ? await Array.fromAsync(evidenceOf(client, id)) : [];
  const files: readonly RunFile[] = [...left, ...records.filter(isOwnFile).map(inFolder)];
  const saved = await downloadInto(call, run, files, folder);
  if (files.length === 0) call.terminal.note(`Run ${id} has left no files.`);
  return printAnswer(call, placed(run, files, saved), () => [...saved.values()].map(cleanText));
}

/** The run's records as files; a list begins with them. */
async function* evidenceOf({ runs }: TroupeClient, runId: string): AsyncGenerator<Artifact> {
  for await (const artifact of runs.artifacts(runId, { page_size: FILES_PAGE })) {
    if (artifact.kind !== "evidence") return;
    yield artifact;
  }
}

/** The final artifact is one of the files that workers left, under another id. */
function isOwnFile({ artifact_id }: RunFile): boolean {
  return artifact_id !== "final_artifact";
}

/** Saved in a folder of its own, apart from the files that workers named. */
function inFolder(file: RunFile): RunFile {
  return { ...file, name: `evidence/${file.name.split("/").at(-1)}` };
}
