// `troupe operations [id]`: long work of the gateway, such as the addition of a blueprint.

import type { Operation, OperationsQuery } from "../../sdk/src/index.ts";
import { type Call, UsageError } from "./command.ts";
import { printList } from "./lists.ts";
import { followOperation, showOperation } from "./operation-follow.ts";
import { whatOf } from "./operation-text.ts";
import { ago } from "./record-text.ts";
import { limitOf } from "./runtime-jobs.ts";
import { withGateway } from "./session.ts";
import { cleanText } from "./text.ts";

const statuses: readonly Operation["status"][] = ["pending", "running", "completed", "failed"];

export async function operations(call: Call): Promise<number> {
  const [operationId] = call.words;
  if (operationId === undefined) return list(call);
  if (!/^op_[0-9a-z]+$/.test(operationId)) {
    const said = `${JSON.stringify(cleanText(operationId))} is no id of an operation`;
    throw new UsageError(`${said}. \`troupe operations\` lists them.`);
  }
  return withGateway(call, async (session) => {
    if (call.flag("follow")) return followOperation(session, operationId);
    return showOperation(session, await session.client.operations.get(operationId));
  });
}

function list(call: Call): Promise<number> {
  const limit = limitOf(call);
  const query: OperationsQuery = { target: call.text("blueprint") ?? undefined, status: statusOf(call) };
  return withGateway(call, ({ client }) =>
    printList<Operation>(
      call,
      {
        items: (pageSize) => client.operations.list({ ...query, page_size: pageSize }),
        head: ["OPERATION", "STATUS", "DONE", "ASKED FOR", "WHAT"],
        row: (operation) => [
          cleanText(operation.operation_id),
          operation.status,
          `${operation.progress.percent} %`,
          ago(operation.created_at),
          whatOf(operation),
        ],
        nothing: "No operations. `troupe blueprint add <blueprint-id>` begins one.",
      },
      limit,
    ),
  );
}

function statusOf(call: Call): Operation["status"] | undefined {
  const text = call.text("status");
  const status = statuses.find((known) => known === text);
  if (text === null || status !== undefined) return status;
  throw new UsageError(`--status: ${JSON.stringify(cleanText(text))} is none of ${statuses.join(", ")}.`);
}
