// The files of payloads/ in which sandboxed nodes have their policies, checked before anything runs.

import { join } from "node:path";
import type { Graph } from "../engine/graph.ts";
import { readPolicyFile } from "../security/sandbox-policy-file.ts";
import { PAYLOADS_FOLDER } from "./layout.ts";
import { BundleProblem, type BundleProblemEntry, ProblemList } from "./problem.ts";

/** @param folder the bundle's folder */
export async function problemsOfPolicies(
  folder: string,
  { nodes }: Graph,
): Promise<readonly BundleProblemEntry[]> {
  const files = nodes.flatMap(({ config }) => (config.kind === "executor" ? (config.policyFile ?? []) : []));
  const problems = new ProblemList();
  for (const file of new Set(files)) {
    const name = `${PAYLOADS_FOLDER}/${file}`;
    for (const { path, code, message } of (await readPolicyFile(join(folder, PAYLOADS_FOLDER), file))
      .problems)
      problems.add(path === "" ? name : `${name}#${path}`, code, `${name}: ${message}`);
  }
  return problems.all();
}

/** @throws BundleProblem */
export async function refuseWrongPolicies(folder: string, graph: Graph): Promise<void> {
  const problems = await problemsOfPolicies(folder, graph);
  if (problems.length > 0) throw new BundleProblem(problems);
}
