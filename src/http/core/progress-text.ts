// Workflow progress as the text of an answer, made a few nodes at a time.

import type { AgentProgress, StepProgress } from "../../runs/history/progress.ts";
import { listText } from "./text-stream.ts";

export interface ProgressLists {
  readonly steps: readonly StepProgress[];
  readonly agents: readonly AgentProgress[];
}

/**
 * @param head the members in front of the nodes, `tail` those behind them
 * @param replacer as of JSON.stringify, for the nodes
 */
export function* renderProgress(
  head: object,
  { steps, agents }: ProgressLists,
  tail: object,
  replacer?: (key: string, value: unknown) => unknown,
): Generator<string> {
  const shown = (nodes: readonly object[]) => JSON.stringify(nodes, replacer);
  yield `${JSON.stringify(head).slice(0, -1)},"steps":`;
  yield* listText(steps, shown);
  yield ',"agents":';
  yield* listText(agents, shown);
  yield `,${JSON.stringify(tail).slice(1)}`;
}
