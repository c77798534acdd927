// A launch's inputs, put in place of the manifest's initial_inputs (CONTRACTS §6 "Gateway runs").

import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { quoted } from "../engine/manifest/problems.ts";

/** What is told of inputs that are wrong in many places. */
const PROBLEMS_MAX = 100;

export type InputsAnswer =
  | { readonly kind: "ok"; readonly graph: Graph }
  | { readonly kind: "invalid"; readonly problems: readonly string[] };

/**
 * Applies inputs to a graph. Absent or {} leaves the manifest's own; `{"$entrypoints": {"id": [bodies]}}` addresses
 * the entrypoints one by one (the others keep theirs); anything else is one body for every entrypoint.
 */
export function withInputs(graph: Graph, inputs: JsonValue | undefined): InputsAnswer {
  if (inputs === undefined) return { kind: "ok", graph };
  if (!isObject(inputs)) return { kind: "invalid", problems: ["inputs must be a JSON object"] };
  if (Object.keys(inputs).length === 0) return { kind: "ok", graph };
  const addressed = inputs.$entrypoints;
  if (addressed === undefined) {
    const initialInputs = new Map(graph.entrypoints.map((index) => [index, [inputs]]));
    return { kind: "ok", graph: { ...graph, initialInputs } };
  }
  return withAddressedInputs(graph, addressed, inputs);
}

function withAddressedInputs(graph: Graph, addressed: JsonValue, inputs: JsonObject): InputsAnswer {
  if (!isObject(addressed)) {
    return {
      kind: "invalid",
      problems: ["inputs.$entrypoints must be an object of entrypoint to list of bodies"],
    };
  }
  const problems = Object.keys(inputs)
    .filter((name) => name !== "$entrypoints")
    .map((name) => `inputs has ${quoted(name)} beside $entrypoints, which would reach nobody`);
  const initialInputs = new Map(graph.initialInputs);
  for (const [nodeId, bodies] of Object.entries(addressed)) {
    const index = graph.indexOf.get(nodeId);
    if (index === undefined || !graph.entrypoints.includes(index)) {
      problems.push(`inputs.$entrypoints names ${quoted(nodeId)}, which is no entrypoint`);
    } else if (Array.isArray(bodies) && bodies.length === 0) initialInputs.delete(index);
    else initialInputs.set(index, Array.isArray(bodies) ? bodies : [bodies]);
  }
  return problems.length > 0
    ? { kind: "invalid", problems: someOf(problems) }
    : { kind: "ok", graph: { ...graph, initialInputs } };
}

function someOf(problems: readonly string[]): readonly string[] {
  const left = problems.length - PROBLEMS_MAX;
  return left > 0 ? [...problems.slice(0, PROBLEMS_MAX), `and ${left} more`] : problems;
}
