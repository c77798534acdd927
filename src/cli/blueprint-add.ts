// `troupe blueprint add` and `remove`: what a blueprint needs is prepared, or goes.

import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { BlueprintRemoval } from "../../sdk/src/index.ts";
import { type Call, exitCodes, UsageError } from "./command.ts";
import { blueprintIdOf } from "./ids.ts";
import { followed, followOperation, showEnd, showOperation } from "./operation-follow.ts";
import { planLines } from "./operation-text.ts";
import { type Session, withGateway } from "./session.ts";

export async function add(call: Call): Promise<number> {
  const id = blueprintIdOf(call);
  const force = call.flag("force") === true;
  return withGateway(call, async (session) => {
    const operation = await session.client.blueprints.add(id, { force });
    return ending(session, operation.operation_id);
  });
}

export async function remove(call: Call): Promise<number> {
  const id = blueprintIdOf(call);
  const removal: BlueprintRemoval = {
    keep_resources: call.flag("keep-resources") === true,
    keep_models: call.flag("keep-models") === true,
  };
  const isPreview = call.flag("dry-run") === true;
  const mayAsk = call.terminal.isScreen && process.stdin.isTTY === true && call.flag("json") !== true;
  if (!isPreview && call.flag("yes") !== true && !mayAsk) {
    throw new UsageError(
      "A removal deletes what was prepared for the blueprint, and adding it again makes it anew. Look at --dry-run, then give --yes.",
    );
  }
  return withGateway(call, async (session) => {
    const { client } = session;
    if (isPreview || call.flag("yes") !== true) {
      const { operation_id: previewId } = await client.blueprints.remove(id, { ...removal, dry_run: true });
      const preview = await followed(session, previewId);
      if (isPreview || preview.error !== null) return showEnd(session, preview);
      for (const line of planLines(preview)) call.terminal.print(line);
      if (!(await isConfirmed(session))) {
        call.terminal.note("Nothing was removed.");
        return exitCodes.failure;
      }
    }
    const operation = await client.blueprints.remove(id, removal);
    return ending(session, operation.operation_id);
  });
}

async function ending(session: Session, operationId: string): Promise<number> {
  const { call, client } = session;
  if (call.flag("wait") !== false) return followOperation(session, operationId);
  return showOperation(session, await client.operations.get(operationId));
}

async function isConfirmed({ interrupt }: Session): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // The end of the input answers nothing, and is a no.
    const ended = once(asking, "close").then(() => "");
    const answer = await Promise.race([asking.question("Remove it? [y/N] ", { signal: interrupt }), ended]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    asking.close();
  }
}
