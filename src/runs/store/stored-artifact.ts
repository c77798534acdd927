// An artifact of a run as both APIs list and serve it: a history file, which the run store makes, or what workers left.

import type { Readable } from "node:stream";
import { isoTime } from "../../engine/event.ts";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import { artifactUrl } from "../history/run-context.ts";

/** evidence: a history file of the run. output: what the run was for. artifact: any other file. */
export const artifactKinds = ["evidence", "artifact", "output"] as const;
export type ArtifactKind = (typeof artifactKinds)[number];

export interface StoredArtifact {
  /** Stable and unique in the run. */
  readonly artifactId: string;
  /** Of the file, with folders where a worker made some. */
  readonly name: string;
  readonly kind: ArtifactKind;
  readonly title: string | null;
  readonly primary: boolean;
  readonly size: number;
  /** Hex. */
  readonly sha256: string;
  readonly contentType: string;
  readonly createdAtMs: number;
  /** The agent that made it. */
  readonly agentId: string | null;
  /**
   * Opens some of its bytes; both ends are included. The stream closes what it holds open.
   *
   * @throws the system's error ENOENT when they were removed just now
   */
  readonly open: (first: number, last: number) => Promise<Readable>;
}

/** An entry of an artifact list (CONTRACTS §3 "Artifacts"). */
export function artifactEntry(
  runId: string,
  artifact: Omit<ArtifactRecord, "kind"> & { readonly kind: string },
) {
  return {
    artifact_id: artifact.artifactId,
    name: artifact.name,
    kind: artifact.kind,
    size: artifact.size,
    sha256: artifact.sha256,
    content_type: artifact.contentType,
    url: artifactUrl(runId, artifact.artifactId),
    created_at: isoTime(artifact.createdAtMs),
    producer: artifact.agentId,
  };
}

/** The name that an artifact is saved under. */
export function fileNameOf({ name, artifactId }: Pick<StoredArtifact, "name" | "artifactId">): string {
  return name.split("/").at(-1) || artifactId;
}
