// `troupe blueprint run`: from a blueprint of the catalog to the outputs of a run, in one command. What has to be added
// or prepared first, the gateway adds and prepares; the run waits for it, and says so.

import type { JsonObject } from "../engine/json.ts";
import type { Call } from "./command.ts";
import { blueprintIdOf } from "./ids.ts";
import { followed, showEnd } from "./operation-follow.ts";
import { started, watchesAsked } from "./runs.ts";
import { withGateway } from "./session.ts";
import { withSettings } from "./settings.ts";
import { readObject } from "./submission.ts";
import { cleanText } from "./text.ts";
import { watchLaunch } from "./watching.ts";

export async function run(call: Call): Promise<number> {
  const id = blueprintIdOf(call);
  const launch = {
    inputs: readObject(call, "input"),
    config_overrides: overridesOf(call),
    name: call.text("name") ?? undefined,
  };
  const watches = watchesAsked(call, true);
  return withGateway(call, async (session) => {
    const { client } = session;
    if (call.flag("refresh") === true) {
      const { operation_id: operationId } = await client.blueprints.add(id, { force: true });
      const addition = await followed(session, operationId);
      if (addition.error !== null) return showEnd(session, addition);
    }
    const { run_id: runId, job_id: jobId, warnings } = await client.blueprints.run(id, launch);
    for (const { code, message } of warnings) {
      const hint =
        code === "folder_changed" ? `; \`troupe blueprint run ${id} --refresh\` adds it first` : "";
      call.terminal.note(cleanText(`Warning: ${message}${hint}.`));
    }
    if (!watches) return started(session, await client.runs.get(runId));
    if (!call.flag("json")) {
      call.terminal.print(cleanText(`Job ${jobId}`));
      call.terminal.print(cleanText(`Run ${runId}`));
    }
    return watchLaunch(session, runId);
  });
}

/** --config with every --set laid over it; undefined when there is neither. */
function overridesOf(call: Call): JsonObject | undefined {
  const file = readObject(call, "config");
  const settings = call.texts("set");
  return settings.length === 0 ? file : withSettings(file ?? {}, settings);
}
