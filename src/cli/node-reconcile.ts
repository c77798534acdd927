// `troupe node reconcile`: lists, and fixes, where a node differs from what its jobs say.

import { exitCodes, printAnswer } from "./command.ts";
import { nodeIdOf } from "./nodes.ts";
import type { ServerCall } from "./session.ts";
import { cleanText, plural } from "./text.ts";

export async function reconcile(call: ServerCall): Promise<number> {
  const found = await call.client.system.reconcileNode(await nodeIdOf(call), {
    fix: call.flag("fix") ?? false,
  });
  const left = found.differences.filter(({ fixed }) => !fixed);
  printAnswer(call, found, () => [
    ...found.differences.flatMap(({ kind, where, what, fix, fixed }) => [
      cleanText(`${kind}: ${where}`),
      cleanText(`  ${what} ${fixed ? "Fixed." : `Fix: ${fix}`}`),
    ]),
    found.differences.length === 0
      ? "The node has what its jobs say, and nothing else."
      : `${plural(found.differences.length, "difference")}, ${left.length} of them not fixed.`,
    ...(found.has_more ? ["There may be more."] : []),
  ]);
  return left.length === 0 ? exitCodes.success : exitCodes.failure;
}
