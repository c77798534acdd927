// The files of runs: `troupe runs artifacts`, `outputs` and `save`.

import {
  type Artifact,
  type Output,
  type RuntimeArtifact,
  type TroupeClient,
  TroupeProblem,
  type TroupeRuntime,
} from "../../sdk/src/index.ts";
import { printAnswer } from "./command.ts";
import { idOf } from "./ids.ts";
import { printList } from "./lists.ts";
import { checkSaveFolder, saveFiles } from "./save.ts";
import type { ServerCall } from "./session.ts";
import { bytes, cleanText } from "./text.ts";

const FILES_PAGE = 200;

export async function artifacts(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const isEvidence = call.flag("evidence") === true;
  const { client } = call;
  const code = await printList<Artifact>(call, {
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
      linkTo(client, file),
    ],
    nothing: "No files.",
  });
  if (!isEvidence && call.terminal.isScreen) {
    call.terminal.note("Its events, logs, errors and timeline as files: --evidence");
  }
  return code;
}

export async function outputs(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const { client } = call;
  return printList<Output>(call, {
    items: (pageSize) => client.runs.outputs(id, { page_size: pageSize }),
    head: ["NAME", "TITLE", "FROM", "SIZE", "LINK"],
    row: (file) => [file.name, file.title, file.producer, bytes(file.size), linkTo(client, file)],
    nothing: `No outputs. \`troupe runs artifacts ${id}\` lists every file.`,
  });
}

export async function save(call: ServerCall): Promise<number> {
  const id = idOf(call, "run");
  const [, folder = ""] = call.words;
  checkSaveFolder(call, folder);
  const { client } = call;
  const left = call.flag("all") ? await artifactsOf(client, id) : await filesOf(client, id);
  const told = call.flag("evidence") ? await Array.fromAsync(evidenceOf(client, id)) : [];
  const files = [...left, ...told.filter(isOwnFile).map(inFolder)];
  const places = await saveInto(call, client.runs, files, folder);
  if (files.length === 0) call.terminal.note(`Run ${id} has left no files.`);
  const document = files.map((file) => placed(client, file, places));
  return printAnswer(call, document, () => [...places.values()].map(cleanText));
}

/** A file as the lists of both APIs have it. */
export type RunFile = Artifact & Partial<Pick<Output, "title" | "primary">>;

/** What a run was for: its outputs, or all its files where it has none. */
export async function filesOf(client: TroupeClient, runId: string): Promise<readonly RunFile[]> {
  const found = await Array.fromAsync(client.runs.outputs(runId, { page_size: FILES_PAGE }));
  return found.length > 0 ? found : artifactsOf(client, runId);
}

function artifactsOf({ runs }: TroupeClient, runId: string): Promise<readonly RunFile[]> {
  return Array.fromAsync(runs.artifacts(runId, { evidence: false, page_size: FILES_PAGE }));
}

/** The files of a run; none when the runtime knows the run no longer. */
export async function runtimeFilesOf(
  runtime: TroupeRuntime,
  runId: string,
): Promise<readonly RuntimeArtifact[]> {
  try {
    return await runtime.artifacts(runId);
  } catch (error) {
    if (error instanceof TroupeProblem && error.status === 404) return [];
    throw error;
  }
}

/** What the gateway tells of the run as files; a list begins with it. */
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

/** Evidence is saved in a folder of its own, apart from the files that workers named. */
function inFolder(file: RunFile): RunFile {
  return { ...file, name: `evidence/${file.name.split("/").at(-1)}` };
}

/** Downloads files of a server into a folder. @returns where each one is, by artifact id */
export function saveInto(
  { flag, interrupt }: ServerCall,
  server: Pick<TroupeRuntime, "download">,
  files: readonly RunFile[],
  folder: string,
): Promise<ReadonlyMap<string, string>> {
  const download = async (file: RunFile) => {
    const { body } = await server.download(file, { signal: interrupt });
    return body ?? new Blob([]).stream();
  };
  return saveFiles(files, download, folder, flag("force") === true);
}

/** A file's address as a program outside can open it; a gateway with a token asks for it there too. */
export function linkTo(
  { baseUrl }: Pick<TroupeClient, "baseUrl">,
  { url }: { readonly url: string },
): string {
  // Behind a proxy that adds a prefix, links still begin at /api/v1.
  const isOwn = url.startsWith("/api/v1/");
  return isOwn ? baseUrl + url.slice("/api/v1".length) : new URL(url, baseUrl).href;
}

/** A file with where it can be got: a path when it was saved, else an address. */
export function placed(client: TroupeClient, file: RunFile, places: ReadonlyMap<string, string>) {
  return { ...file, place: places.get(file.artifact_id) ?? linkTo(client, file) };
}
