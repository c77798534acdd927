// What a command that has ended comes to: its outcome, and the files it has left.

import { type DeclaredOutput, type ExecutorConfig, outputName } from "../../engine/graph.ts";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import { SANDBOX_WORKSPACE } from "../../engine/sandbox.ts";
import { type ArtifactRecord, noActions, type TaskOutcome, type TaskStart } from "../../engine/task-port.ts";
import { isEmptyFolder } from "../../lib/files.ts";
import { collectArtifacts } from "../output/artifacts.ts";
import { type AttemptOutput, redactActions } from "../output/attempt-output.ts";
import { logEvent } from "../output/event-stream.ts";
import type { Redactor } from "../output/redaction.ts";
import type { NamedOutput } from "../output/result.ts";
import { AttemptFailure, type AttemptReport, interrupted } from "./attempt.ts";
import type { Places } from "./attempt-places.ts";
import { type CommandEnd, failureOfEnd } from "./command-failure.ts";
import { outcomeOfModule } from "./module-process.ts";

/** An attempt whose command has ended. */
interface Ended {
  readonly task: TaskStart;
  readonly config: Pick<ExecutorConfig, "module">;
  readonly report: AttemptReport;
  readonly redactor: Redactor;
}

interface Tools extends Pick<Parameters<typeof collectArtifacts>[0], "home" | "blobs" | "newId"> {
  readonly clock: Pick<Clock, "nowMs">;
  readonly declaredOutputs: (jobId: string) => readonly DeclaredOutput[];
  readonly log: Pick<EngineLog, "warn">;
}

/** Turns a command that has ended into its outcome: why it ended, what it asked for, what it left. */
export async function conclude(
  attempt: Ended,
  places: Places,
  output: AttemptOutput,
  end: CommandEnd,
  options: Tools,
): Promise<TaskOutcome> {
  const { redactor } = attempt;
  const { command } = end;
  if (end.reason === "stopped" || end.reason === "draining") return interrupted(end.reason);
  if (end.reason === "answer_unwritten") {
    const { ref, agentId } = attempt.task;
    const fields = { job_id: ref.jobId, agent_id: agentId, error: String(end.answerError) };
    options.log.warn(fields, "A person's answer could not be written; the attempt was ended.");
  }
  const { module } = attempt.config;
  if (module !== null) {
    const called = { module: module.path, where: "process", root: SANDBOX_WORKSPACE, redactor } as const;
    return await outcomeOfModule(end, called, places);
  }
  const reading = output.result();
  const named = reading.kind === "result" ? reading.outputs : output.outputs;
  let artifacts: readonly ArtifactRecord[] = [];
  let failure = failureOfEnd(end);
  if (failure === null && reading.kind === "invalid")
    failure = new AttemptFailure(reading.code, reading.message);
  try {
    artifacts = await collect(options, attempt, places, named);
  } catch (error) {
    failure ??= new AttemptFailure(
      "executor.artifact_failed",
      `An artifact could not be kept: ${String(error)}`,
    );
  }
  if (failure !== null) {
    return {
      kind: "failed",
      code: failure.code,
      message: redactor.text(failure.message),
      command,
      artifacts,
    };
  }
  const actions = reading.kind === "result" ? redactActions(reading.actions, redactor) : noActions;
  return { kind: "succeeded", actions, command, artifacts, observation: null };
}

async function collect(
  { blobs, newId, clock, declaredOutputs, home }: Tools,
  { task, report, redactor }: Ended,
  places: Places,
  named: readonly NamedOutput[],
): Promise<readonly ArtifactRecord[]> {
  const warn = (message: string) =>
    report.events([logEvent("warn", "worker", redactor.text(message), task.ref.attempt)]);
  // Opening a folder, and going through it, takes longer than most commands that have no outputs.
  const artifacts = isEmptyFolder(places.files.output)
    ? []
    : await collectArtifacts({
        home,
        folder: places.files.output,
        agentId: task.agentId,
        blobs,
        newId,
        nowMs: clock.nowMs(),
        outputs: [...declaredOutputs(task.ref.jobId), ...named],
        warn,
      });
  const kept = new Set(artifacts.map(({ name }) => name));
  const missing = named.filter((output) => !kept.has(outputName(output)));
  if (missing.length > 0) {
    const names = missing.slice(0, 10).map(({ path }) => JSON.stringify(path));
    warn(`The result names outputs that are no regular files in SVC_OUTPUT_DIR: ${names.join(", ")}.`);
  }
  return artifacts.map((artifact) => ({
    ...artifact,
    name: redactor.text(artifact.name),
    title: artifact.title === null ? null : redactor.text(artifact.title),
  }));
}
