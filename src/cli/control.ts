// Commands that change the state of runs: cancel, pause and resume, by the id of a run, a job, or a runtime's job.

import { printAnswer } from "./command.ts";
import { idKind, idOf } from "./ids.ts";
import type { ServerCall } from "./session.ts";
import { cleanText } from "./text.ts";

export type Action = "cancel" | "pause" | "resume";

/**
 * The command that asks for one change of state; of a job of every open run.
 *
 * @param only the kind of id it takes; any kind when absent
 */
export function control(action: Action, only?: "job" | "run"): (call: ServerCall) => Promise<number> {
  return async (call) => {
    const id = only === undefined ? (call.words[0] ?? "") : idOf(call, only);
    switch (only ?? idKind(id)) {
      case "job": {
        const answer = await call.client.jobs[action](id);
        return printAnswer(call, answer, () => answer.runs.map((run) => stateLine(run.run_id, run.status)));
      }
      case "run": {
        const run = await call.client.runs[action](id);
        return printAnswer(call, run, () => stateLine(run.run_id, run.status));
      }
      case "runtime": {
        const job = await call.runtime.control(id, action);
        return printAnswer(call, job, () => stateLine(job.job_id, job.status));
      }
    }
  };
}

const stateLine = (id: string, status: string) => cleanText(`${id} ${status}`);
