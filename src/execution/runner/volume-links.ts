// Where a command finds its volumes: a symlink in its working folder to each, for as long as it runs.

import { lstatSync, symlinkSync, unlinkSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import type { VolumeNeed } from "../../engine/resources.ts";
import { type OpenFolder, SymlinkInPath } from "../../lib/open-folder.ts";
import type { Volumes } from "../volumes.ts";
import { StagingError } from "./staging.ts";

export interface VolumeLink {
  readonly need: VolumeNeed;
  /** The volume itself. */
  readonly path: string;
  /** From the agent's folder to the link. */
  readonly way: string;
}

export interface LinkedIn {
  /** The agent's folder, and where it is. */
  readonly agent: OpenFolder;
  readonly folder: string;
  readonly workdir: string;
  /** Where the link leads to, for the worker. */
  readonly target: (name: string, path: string) => string;
}

/** @throws AttemptFailure; StagingError; the system's error */
export async function linkVolumes(
  volumes: Volumes,
  needs: readonly VolumeNeed[],
  { agent, folder, workdir, target }: LinkedIn,
): Promise<readonly VolumeLink[]> {
  const links: VolumeLink[] = [];
  for (const need of needs) {
    try {
      const path = await volumes.prepare(need);
      const way = join(relative(folder, workdir), need.path);
      using above = agent.made(dirname(way));
      link(above.path(basename(way)), target(need.name, path), need);
      links.push({ need, path, way });
    } catch (error) {
      unlinkVolumes(links, agent);
      if (!(error instanceof SymlinkInPath)) throw error;
      throw new StagingError(`Volume "${need.name}" cannot be given to the command: ${error.message}`);
    }
  }
  return links;
}

function link(path: string, target: string, { name, path: named }: VolumeNeed): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  // A crash has left it, or the agent's last command has put it there.
  if (found?.isSymbolicLink()) unlinkSync(path);
  else if (found !== undefined)
    throw new StagingError(
      `Volume "${name}" cannot be at "${named}" in the working folder: something else is there.`,
    );
  symlinkSync(target, path);
}

/** What the command has put in the place of a link stays. */
export function unlinkVolumes(links: readonly VolumeLink[], agent: OpenFolder): void {
  for (const { way } of links) {
    try {
      using above = agent.folder(dirname(way));
      const path = above.path(basename(way));
      if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) unlinkSync(path);
    } catch {
      // The command has removed, or moved, the folder that it was in.
    }
  }
}
