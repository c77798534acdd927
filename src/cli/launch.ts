// `troupe launch`: from a folder on this machine to the outputs of a run, in one command.

import type { Bundle, Run, TaggedJob } from "../../sdk/src/index.ts";
import type { JsonObject } from "../engine/json.ts";
import { readTarget, type Target, uploadTarget } from "./bundles.ts";
import { type Call, exitCodes } from "./command.ts";
import { started, watchesAsked } from "./runs.ts";
import { type Session, withGateway } from "./session.ts";
import { readObject } from "./submission.ts";
import { cleanText } from "./text.ts";
import { watchRun } from "./watching.ts";

/** Everything that is read from this machine; before anything is sent. */
interface Plan {
  readonly target: Target;
  readonly name: string | null;
  readonly inputs: JsonObject | undefined;
  readonly config: JsonObject | undefined;
  readonly watches: boolean;
}

export async function launch(call: Call): Promise<number> {
  const plan: Plan = {
    target: readTarget(call),
    name: call.text("name"),
    inputs: readObject(call, "input"),
    config: readObject(call, "config"),
    watches: watchesAsked(call, true),
  };
  return withGateway(call, async (session) => {
    const launched = await begin(session, plan);
    if (launched === null) return exitCodes.interrupted;
    const { run, bundle } = launched;
    const also = { bundle_id: bundle.bundle_id };
    return plan.watches ? watchRun(session, run.run_id, also) : started(session, run, also);
  });
}

interface Launched {
  readonly bundle: Bundle;
  readonly run: Run;
}

/** @returns null when it was interrupted; what there is by then has been said */
async function begin(session: Session, plan: Plan): Promise<Launched | null> {
  const { call, client, interrupt } = session;
  let job: TaggedJob | null = null;
  try {
    const bundle = await uploadTarget(session, plan.target);
    tell(call, plan, `Bundle ${bundle.bundle_id}`);
    job = await client.jobs.create({
      bundle_id: bundle.bundle_id,
      name: plan.name ?? undefined,
      resolved_configuration: plan.config,
    });
    tell(call, plan, `Job ${job.job_id}`);
    const run = await client.runs.start(job.job_id, { inputs: plan.inputs });
    if (plan.watches) tell(call, plan, `Run ${run.run_id}`);
    return { bundle, run };
  } catch (error) {
    // The job stays: it can be run again when what was wrong with the run is mended.
    if (job !== null)
      call.terminal.note(`The job ${cleanText(job.job_id)} is there; troupe runs start runs it.`);
    if (interrupt.aborted) return null;
    throw error;
  }
}

/** Without watching, the run's id is alone on stdout, for scripts. */
function tell({ terminal, flag }: Call, { watches }: Plan, line: string): void {
  if (flag("json")) return;
  if (watches) terminal.print(cleanText(line));
  else terminal.note(cleanText(line));
}
