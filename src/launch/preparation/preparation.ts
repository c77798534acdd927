// What stands between a run that is asked for and a graph that the engine is given: the parts of it as others see them.

import type { PackageDescription, WebUi } from "../../blueprints/package-description.ts";
import type { Definition } from "../../bundles/definition.ts";
import type { FailureCode } from "../../engine/failure-catalogue.ts";
import type { Graph } from "../../engine/graph.ts";
import type { JsonObject } from "../../engine/json.ts";

/** What is to be launched. */
export interface LaunchSubject {
  /** Null for a job of an uploaded bundle. */
  readonly blueprintId: string | null;
  /** The snapshot; null for a blueprint that is not added: what needs its payload is not looked at. */
  readonly fingerprint: string | null;
  readonly definition: Definition;
  readonly description: PackageDescription;
  /** The job's own configuration, secrets sealed. */
  readonly jobConfiguration: JsonObject;
  /** The run's, secrets sealed; null without any. */
  readonly configOverrides: JsonObject | null;
  /** The run's `inputs`. */
  readonly inputs: JsonObject;
}

/** One reason why a run cannot be accepted. */
export interface LaunchProblem {
  /**
   * What `path` leads into: the resolved configuration, the run's inputs, a file of the package (its name, `#`, and a
   * pointer into it), or (path "") nothing of these.
   */
  readonly part: "configuration" | "inputs" | "package" | "launch";
  /** JSON Pointer, such as "/documents/folder". */
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

export interface LaunchCheck {
  /** The configuration or the inputs are to blame. */
  readonly errors: readonly LaunchProblem[];
  /** The machine is: what the package requires and is not there. Each message is a whole sentence with the next step. */
  readonly unmet: readonly LaunchProblem[];
  readonly warnings: readonly LaunchProblem[];
  /** The web interface that the resolved configuration asks for: the run needs a port. */
  readonly webUi: WebUi | null;
}

/** Where the parts of a prepared launch go. */
export interface PreparedLaunch {
  readonly graph: Graph;
  readonly manifestJson: string;
  /** Sealed; null when there is none. */
  readonly configurationJson: string | null;
  readonly hasOwnPayload: boolean;
  /** Without values that are blank where a folder was staged. */
  readonly inputs: JsonObject;
}

export interface PreparingRun {
  readonly runId: string;
  readonly jobId: string;
  /** By label. */
  readonly ports: ReadonlyMap<string, number>;
  /**
   * Whether its package was there when the run was accepted. The validators of one that was not could not be asked about
   * native paths then, and are asked now.
   */
  readonly wasExamined: boolean;
}

export interface PreparationProgress {
  /** Aborted when the run is cancelled or the program stops. */
  readonly signal: AbortSignal;
  /** For people, such as "Copying documents: 3 of 12 files"; called as often as is convenient. */
  report(label: string): void;
}

/** The run fails with this; nothing of its preparation is kept. */
export class PreparationFailed extends Error {
  override readonly name = "PreparationFailed";
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}
