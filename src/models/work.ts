// The work on models' files that may take long: it is done in a thread (model-work.ts).

import { type Content, copyContent, copyFolderContent, hashedFile } from "./copy-content.ts";
import { type DownloadProgress, download } from "./download.ts";
import { type Inspection, inspectModel, type Memory } from "./inspect-model.ts";

export type ModelWork =
  | { readonly kind: "copy"; readonly from: string; readonly to: string }
  | {
      readonly kind: "copy_folder";
      readonly from: string;
      readonly to: string;
      readonly files: readonly string[];
    }
  | { readonly kind: "hash"; readonly path: string }
  | { readonly kind: "download"; readonly url: string; readonly token: string | null; readonly to: string }
  | {
      readonly kind: "inspect";
      readonly path: string;
      readonly context: number | null;
      readonly memory: Memory;
    };

export type WorkMessage =
  | { readonly kind: "begins"; readonly totalBytes: number | null; readonly bytesThere: number }
  | { readonly kind: "done"; readonly bytes: number }
  | { readonly kind: "ended"; readonly result: Content | Inspection }
  | { readonly kind: "failed"; readonly error: WorkError };

/** An error on its way to the other thread, where it is made again. */
export interface WorkError {
  readonly name: string;
  readonly message: string;
  readonly code: string | undefined;
  readonly isPassing: boolean;
  readonly waitMs: number | null;
}

/** Does a piece of work in this thread. */
export function worked(work: ModelWork, { begins, done }: DownloadProgress): Promise<Content | Inspection> {
  switch (work.kind) {
    case "copy":
      return copyContent(work.from, work.to, done);
    case "copy_folder":
      return copyFolderContent(work.from, work.to, work.files, done);
    case "hash":
      return hashedFile(work.path, done);
    case "download":
      return download(work, { begins, done });
    case "inspect":
      return inspectModel(work.path, work.context, work.memory);
    default:
      return work satisfies never;
  }
}
