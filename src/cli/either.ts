// Commands that take an id of either API: `troupe job`, `events`, `cancel`, `pause`, `resume`.

import type { Call } from "./command.ts";
import { control as controlRuntimeJob } from "./control.ts";
import { events as runtimeEvents } from "./events.ts";
import { gatewayKind } from "./ids.ts";
import * as jobs from "./jobs.ts";
import * as runRecords from "./run-records.ts";
import * as runs from "./runs.ts";
import { job as runtimeJob } from "./runtime-jobs.ts";

type Run = (call: Call) => Promise<number>;

function byId(commands: { readonly job: Run; readonly run: Run; readonly runtime: Run }): Run {
  return (call) => commands[gatewayKind(call.words[0] ?? "") ?? "runtime"](call);
}

export const job = byId({ job: jobs.show, run: runs.show, runtime: runtimeJob });
export const events = byId({ job: jobs.events, run: runRecords.events, runtime: runtimeEvents });

/** The command that asks for one change of state. */
export function control(action: "cancel" | "pause" | "resume"): Run {
  return byId({
    job: jobs.control(action),
    run: runs.control(action),
    runtime: controlRuntimeJob(action),
  });
}
