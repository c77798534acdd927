// What a command runs in: its sandbox, and the group that keeps it within its memory and cores; either may be none.

import type { ExecutorConfig } from "../../engine/graph.ts";
import type { EngineLog } from "../../engine/ports.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import type { ControlGroup, ControlGroups } from "../process/control-groups.ts";
import { isSandboxed, keptAmounts } from "../sandbox/config.ts";
import type { Sandbox, Sandboxes } from "../sandbox/sandboxes.ts";
import { AttemptFailure, type AttemptReport } from "./attempt.ts";
import type { Places } from "./attempt-places.ts";
import { failureOfSystem } from "./command-failure.ts";

export interface Around extends AsyncDisposable {
  readonly sandbox: Sandbox | null;
  readonly group: ControlGroup | null;
}

export interface AroundTools {
  readonly sandboxes: Sandboxes;
  readonly groups: ControlGroups;
  readonly log: EngineLog;
}

interface Asked {
  readonly task: TaskStart;
  readonly config: ExecutorConfig;
  readonly report: AttemptReport;
}

/** @throws AttemptFailure when it is to have a sandbox and cannot */
export async function openAround(asked: Asked, places: Places, tools: AroundTools): Promise<Around> {
  await using open = new AsyncDisposableStack();
  const sandbox = open.use(await sandboxFor(asked, places, tools));
  const group = open.use(await groupFor(asked, tools));
  const opened = open.move();
  return { sandbox, group, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function sandboxFor(
  { task, config, report }: Asked,
  places: Places,
  tools: AroundTools,
): Promise<Sandbox | null> {
  if (!isSandboxed(config)) return null;
  try {
    return await tools.sandboxes.prepare(task, config, places, report);
  } catch (error) {
    if (error instanceof AttemptFailure) throw error;
    throw failureOfSystem("The sandbox could not be prepared", error);
  }
}

async function groupFor({ task, config }: Asked, { groups, log }: AroundTools): Promise<ControlGroup | null> {
  const amounts = keptAmounts(config);
  if (amounts === null) return null;
  try {
    return await groups.make(amounts);
  } catch (error) {
    const fields = { job_id: task.ref.jobId, agent_id: task.agentId, error: String(error) };
    log.warn(fields, "A command could be given no control group: at most its memory is watched.");
    return null;
  }
}
