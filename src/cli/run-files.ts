// The files of runs: `troupe runs artifacts`, `outputs` and `save`.

import type { Artifact, Output } from "../../sdk/src/index.ts";
import { type Call, exitCodes } from "./command.ts";
import { idOf } from "./ids.ts";
import { printList } from "./lists.ts";
import { checkSaveFolder, saveFiles } from "./save.ts";
import { type Session, withGateway } from "./session.ts";
import { bytes, cleanText } from "./text.ts";

const FILES_PAGE = 200;

export async function artifacts(call: Call): Promise<number> {
  const id = idOf(call, "run");
  const isEvidence = call.flag("evidence") === true;
  return withGateway(call, async (session) => {
    const { runs } = session.client;
    const code = await printList<Artifact>(
      call,
      {
        items: (pageSize) =>
          isEvidence ? evidenceOf(session, id) : runs.artifacts(id, { evidence: false, page_size: pageSize }),
        head: ["NAME", isEvidence ? "ID" : "KIND", "FROM", "SIZE", "LINK"],
        row: (file) => [
          cleanText(file.name),
          cleanText(isEvidence ? file.artifact_id : file.kind),
          cleanText(file.producer ?? ""),
          bytes(file.size),
          cleanText(linkTo(session, file)),
        ],
        nothing: "No files.",
      },
      null,
    );
    if (!isEvidence && call.terminal.isScreen) {
      call.terminal.note("Its events, logs, errors and timeline as files: --evidence");
    }
    return code;
  });
}

export async function outputs(call: Call): Promise<number> {
  const id = idOf(call, "run");
  return withGateway(call, (session) =>
    printList<Output>(
      call,
      {
        items: (pageSize) => session.client.runs.outputs(id, { page_size: pageSize }),
        head: ["NAME", "TITLE", "FROM", "SIZE", "LINK"],
        row: (file) => [
          cleanText(file.name),
          cleanText(file.title ?? ""),
          cleanText(file.producer ?? ""),
          bytes(file.size),
          cleanText(linkTo(session, file)),
        ],
        nothing: `No outputs. \`troupe runs artifacts ${id}\` lists every file.`,
      },
      null,
    ),
  );
}

export async function save(call: Call): Promise<number> {
  const id = idOf(call, "run");
  const [, folder = ""] = call.words;
  checkSaveFolder(call, folder);
  return withGateway(call, async (session) => {
    const left = call.flag("all") ? await artifactsOf(session, id) : await filesOf(session, id);
    const told = call.flag("evidence") ? await Array.fromAsync(evidenceOf(session, id)) : [];
    const files = [...left, ...told.filter(isOwnFile).map(inFolder)];
    const places = await saveInto(session, files, folder);
    if (call.flag("json"))
      call.terminal.print(JSON.stringify(files.map((file) => placed(session, file, places))));
    else for (const place of places.values()) call.terminal.print(cleanText(place));
    if (files.length === 0) call.terminal.note(`Run ${id} has left no files.`);
    return exitCodes.success;
  });
}

/** A file as both lists have it. */
export type RunFile = Artifact & Partial<Pick<Output, "title" | "primary">>;

/** What a run was for: its outputs, or all its files where it has none. */
export async function filesOf(session: Session, runId: string): Promise<readonly RunFile[]> {
  const found = await Array.fromAsync(session.client.runs.outputs(runId, { page_size: FILES_PAGE }));
  return found.length > 0 ? found : artifactsOf(session, runId);
}

function artifactsOf({ client }: Session, runId: string): Promise<readonly RunFile[]> {
  return Array.fromAsync(client.runs.artifacts(runId, { evidence: false, page_size: FILES_PAGE }));
}

/** What the gateway tells of the run as files; a list begins with it. */
async function* evidenceOf({ client }: Session, runId: string): AsyncGenerator<Artifact> {
  for await (const artifact of client.runs.artifacts(runId, { page_size: FILES_PAGE })) {
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

/** Downloads files into a folder. @returns where each one is, by artifact id */
export function saveInto(
  { call, client, interrupt }: Session,
  files: readonly RunFile[],
  folder: string,
): Promise<ReadonlyMap<string, string>> {
  const download = async (file: RunFile) => {
    const { body } = await client.runs.download(file, { signal: interrupt });
    return body ?? new Blob([]).stream();
  };
  return saveFiles(files, download, folder, call.flag("force") === true);
}

/** A file's address as a program outside can open it; a gateway with a token asks for it there too. */
export function linkTo({ client }: Session, { url }: { readonly url: string }): string {
  // Behind a proxy that adds a prefix, links still begin at /api/v1.
  const isOwn = url.startsWith("/api/v1/");
  return isOwn ? client.baseUrl + url.slice("/api/v1".length) : new URL(url, client.baseUrl).href;
}

/** A file with where it can be got: a path when it was saved, else an address. */
export function placed(session: Session, file: RunFile, places: ReadonlyMap<string, string>) {
  return { ...file, place: places.get(file.artifact_id) ?? linkTo(session, file) };
}
