// What a command has on disk: its agent's folder and its attempt's, prepared before it starts and put away when it has
// ended, and the pipes that belong to them.
//
// - Both folders are held open meanwhile: whatever becomes of their paths, what is written and looked at is in them.
// - Nothing stays of a command that has left nothing in its workspace: its folders are another's (spare-folders.ts), or go.

import { basename, dirname, relative } from "node:path";
import type { ExecutorConfig } from "../../engine/graph.ts";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import { makeFolder } from "../../lib/files.ts";
import { OpenFolder } from "../../lib/open-folder.ts";
import type { FifoSupply } from "../process/pipes.ts";
import { WorkerPipes } from "../process/worker-pipes.ts";
import { volumeInside } from "../sandbox/places.ts";
import type { Volumes } from "../volumes.ts";
import { AttemptFailure, type AttemptReport } from "./attempt.ts";
import { failureOfSystem } from "./command-failure.ts";
import { type AgentFolders, agentFolders, attemptFolder, type PayloadOf } from "./paths.ts";
import { closeHeld, type HeldFolders, SpareFolders } from "./spare-folders.ts";
import { StagingError } from "./staging.ts";
import type { Trash } from "./trash.ts";
import { linkVolumes, unlinkVolumes, type VolumeLink } from "./volume-links.ts";
import {
  attemptFiles,
  findBrought,
  findWorkdir,
  makeAttemptFolder,
  type WorkerPlaces,
  writeAttemptFiles,
} from "./worker-contract.ts";
import { Workspaces } from "./workspace.ts";

export interface PlacesOptions {
  readonly home: string;
  readonly payloadOf: PayloadOf;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export interface PlacesTools {
  readonly trash: Trash;
  readonly fifos: FifoSupply;
  readonly volumes: Volumes;
}

export interface Places extends WorkerPlaces, HeldFolders {
  readonly folders: AgentFolders;
  readonly volumes: readonly VolumeLink[];
  /** Whether something is staged for the command. */
  readonly hasUploads: boolean;
}

/** What is left when a command has ended. */
export interface Left {
  /** Whether no process of it is left for sure. */
  readonly isTreeGone: boolean;
  readonly isWorkspaceEmpty: boolean;
}

const noVolumes: readonly VolumeLink[] = [];

export class AttemptPlaces {
  readonly #options: PlacesOptions;
  readonly #tools: PlacesTools;
  readonly #workspaces = new Workspaces();
  readonly #spareFolders: SpareFolders;

  constructor(options: PlacesOptions, tools: PlacesTools) {
    this.#options = options;
    this.#tools = tools;
    this.#spareFolders = new SpareFolders(options.home, tools.trash, options.clock, options.log);
  }

  /** @throws AttemptFailure */
  async prepare(task: TaskStart, config: ExecutorConfig, report: AttemptReport): Promise<Places> {
    const { home, payloadOf } = this.#options;
    const folders = agentFolders(home, task.runId, task.agentId);
    const folder = attemptFolder(folders, task.ref);
    using opened = new DisposableStack();
    try {
      const uploads = config.uploadPaths;
      const hasUploads = uploads.length > 0;
      // Also for what findBrought finds: it comes with a payload of the run's own.
      const payload = hasUploads || task.hasOwnPayload ? await payloadOf(task) : null;
      const spare = hasUploads ? null : this.#spareFolders.take(folders, basename(folder));
      if (spare !== null) {
        opened.defer(() => closeHeld(spare));
        this.#workspaces.adopt(folders);
      }
      const agent = spare?.agent ?? opened.use(this.#agentFolder(folders));
      const changes = await this.#workspaces.prepare({ folders, agent, payload, uploads });
      if (changes.length > 0) {
        const event = { attempt: task.ref.attempt, changes, action: "staged_afresh" };
        report.events([{ type: "workspace_modified", payload: event }]);
      }
      const workdir = await findWorkdir(config, folders.work);
      const target = config.sandbox === null ? (_: string, path: string) => path : volumeInside;
      const place = { agent, folder: folders.agent, workdir, target };
      const volumes =
        config.volumes.length === 0
          ? noVolumes
          : await linkVolumes(this.#tools.volumes, config.volumes, place);
      const attempt =
        spare?.attempt ?? opened.use(await makeAttemptFolder(agent, relative(folders.agent, folder)));
      await writeAttemptFiles(task, attempt, spare !== null);
      const { clock } = this.#options;
      const pipes =
        spare?.pipes ?? (await WorkerPipes.open(this.#tools.fifos, clock, attempt.path("events")));
      opened.move();
      return {
        files: attemptFiles(task, folder),
        workspace: folders.work,
        workdir,
        runFolder: folders.shared,
        brought: findBrought(home, task),
        node: process.execPath,
        folders,
        agent,
        attempt,
        pipes,
        volumes,
        hasUploads,
      };
    } catch (error) {
      if (error instanceof AttemptFailure) throw error;
      if (error instanceof StagingError) throw new AttemptFailure("executor.staging_failed", error.message);
      throw failureOfSystem("The agent's workspace could not be prepared", error);
    }
  }

  /** Takes its volumes from the command, and notes how it has left its workspace. @returns whether that is empty */
  async settle({ folders, agent, volumes }: Places): Promise<boolean> {
    unlinkVolumes(volumes, agent);
    try {
      return await this.#workspaces.settle(folders, agent);
    } catch (error) {
      this.#options.log.warn(
        { folder: folders.agent, error: String(error) },
        "The state of an agent's workspace could not be noted; changes by others will not be noticed.",
      );
      return false;
    }
  }

  /**
   * Removes the attempt's folder; all of the agent's when the command has left nothing in its workspace.
   *
   * @param left null when there was no command
   */
  async putAway(places: Places, left: Left | null): Promise<void> {
    const { files, folders } = places;
    const { trash } = this.#tools;
    const isOver = left?.isWorkspaceEmpty === true && !places.hasUploads;
    if (left === null) unlinkVolumes(places.volumes, places.agent);
    try {
      if (isOver) {
        this.#workspaces.forget(folders);
        if (left.isTreeGone && this.#spareFolders.keep(folders, places, basename(files.folder))) return;
      }
      await places.pipes.finish(async () => {});
      closeHeld(places);
      await trash.discard(files.folder);
      if (isOver) await trash.discard(folders.agent);
    } catch (error) {
      this.#options.log.warn({ folder: files.folder, error: String(error) }, "An attempt's folder is left.");
    }
  }

  /** Whether an agent's folder is kept for further commands. */
  keeps(agent: string): boolean {
    return this.#spareFolders.has(agent);
  }

  /** Removes what is kept for further commands. */
  async close(): Promise<void> {
    await this.#spareFolders.close();
  }

  /** Makes what an agent shares with its run, and opens its own folder. @throws SymlinkInPath */
  #agentFolder({ shared, agent }: AgentFolders): OpenFolder {
    const runFolder = dirname(shared);
    using run = OpenFolder.madeBelow(this.#options.home, relative(this.#options.home, runFolder));
    makeFolder(run.path(basename(shared)), 0o700);
    return run.made(relative(runFolder, agent));
  }
}
