// GET /jobs/{job_id}/grid: what each agent of a job came to in each of its newest runs. A page is some agents in the order of the
// graph; its rows are found by their keys, all runs in one query.

import type { FastifyInstance } from "fastify";
import type { Bundles } from "../../bundles/bundles.ts";
import { BundleProblem } from "../../bundles/problem.ts";
import type { GraphNode } from "../../engine/graph.ts";
import { storedBundle } from "../../launch/job-sources.ts";
import type { GatewayRecords, GridRun } from "../../launch/records.ts";
import { type NodeState, nodeState } from "../../runs/history/progress.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import { addRoutes, get } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { findJob } from "./find-run.ts";
import { type PageParts, sendPage } from "./lists.ts";
import { RunSummarySchema, renderRunSummary } from "./run-view.ts";
import { pageOf, pageQuery } from "./schemas.ts";
import { StepState } from "./workflow-progress.ts";

const RUNS_DEFAULT = 25;
const RUNS_MAX = 100;
/** Of a page: they are read and rendered in some five milliseconds. */
const CELLS_MAX = 2_000;
/** Of each package that the runs have. */
const FAILED_MAX = 10_000;

const GridAgentSchema = Type.Object({
  agent_id: Type.String({ examples: ["writer"] }),
  agent_type: Type.String({ examples: ["executor"] }),
  role: Type.Nullable(Type.String()),
  states: Type.Array(
    Type.Nullable(StepState),
    "One for each of runs, in their order; null where that run's graph has no such agent.",
  ),
});

const JobGridSchema = Type.Object(
  {
    ...pageOf(GridAgentSchema, "").properties,
    runs: Type.Array(RunSummarySchema, "Newest first; the same ones on all pages of a walk."),
  },
  "A page of a job's agents, in the order of its graph, with what they are in its newest runs.",
);

const JobGridQuery = Type.Input({
  runs: Type.Integer("How many of the newest runs.", {
    minimum: 1,
    maximum: RUNS_MAX,
    default: RUNS_DEFAULT,
  }),
  q: Type.String("Only agents with this text in their id or role, whatever its case.", { maxLength: 200 }),
  state: Type.OneOf(["failed"], "Only agents that were this in one of the runs."),
  ...pageQuery,
});

/** By the names that clients see. */
export const schemas = { GridAgent: GridAgentSchema, JobGrid: JobGridSchema };

export interface Parts extends PageParts {
  readonly records: Pick<GatewayRecords, "job" | "gridRuns">;
  readonly journal: Pick<JobRecords, "agentStates" | "failedAgents">;
  readonly bundles: Bundles;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  addRoutes(api, "jobs", [
    get("/jobs/:job_id/grid", {
      operationId: "getJobGrid",
      summary: "See what agents were in a job's newest runs",
      description:
        "Agents by runs. A page costs one read of the rows it shows, however long the histories are, and has fewer agents than page_size where that would be more than 2,000 states. Rows are the agents of the job's graph as it is now: none while the job waits for its blueprint.",
      query: JobGridQuery,
      answers: { 200: JobGridSchema },
      problems: ["conflict"],
      handle: async (request, reply) => {
        const { bundleFingerprint, jobId } = await findJob(parts, request.params.job_id);
        const { runs: count = RUNS_DEFAULT, q = "", state } = request.query;
        const nodes = bundleFingerprint === null ? [] : await nodesOf(parts, bundleFingerprint);
        let runs: readonly GridRun[] = [];
        return sendPage(parts, request, reply, {
          rows: async (limit, after) => {
            runs = await parts.records.gridRuns(jobId, count, after === null ? null : String(after[1]));
            const agentsMax = Math.max(1, Math.floor(CELLS_MAX / Math.max(1, runs.length)));
            const from = after === null ? 0 : Number(after[0]) + 1;
            const ofState =
              state === undefined
                ? nodes
                : await failedOf(parts, { runs, fingerprint: bundleFingerprint }, nodes);
            const found = matching(ofState, from, q, Math.min(limit, agentsMax + 1));
            const isCut = found.length > agentsMax;
            const agents = isCut ? found.slice(0, agentsMax) : found;
            return { rows: await rowsOf(parts, { runs, fingerprint: bundleFingerprint }, agents), isCut };
          },
          positionOf: ({ node }) => [node.index, runs[0]?.runId ?? ""],
          render: ({ node: { nodeId, agentType, role }, states }) =>
            JSON.stringify({ agent_id: nodeId, agent_type: agentType, role, states }),
          remarks: () => ({ runs: runs.map((run) => JSON.parse(renderRunSummary(run))) }),
        });
      },
    }),
  ]);
}

interface ShownRuns {
  readonly runs: readonly GridRun[];
  /** Of the job's package as it is now. */
  readonly fingerprint: string | null;
}

interface Row {
  readonly node: GraphNode;
  readonly states: readonly (NodeState | null)[];
}

const nodesOf = async ({ bundles }: Parts, fingerprint: string) =>
  (await storedBundle(bundles, fingerprint)).graph.nodes;

/** Those that failed in one of the runs. */
async function failedOf(
  parts: Parts,
  { runs, fingerprint: ofJob }: ShownRuns,
  nodes: readonly GraphNode[],
): Promise<readonly GraphNode[]> {
  const failed = new Set<string>();
  for (const [fingerprint, alike] of Map.groupBy(runs, (run) => run.bundleFingerprint ?? ofJob)) {
    const places = fingerprint === ofJob ? placesOf(nodes) : await placesIn(parts, fingerprint);
    const jobIds = alike.map(({ runtimeJobId }) => runtimeJobId);
    const indices = new Set(await parts.journal.failedAgents(jobIds, FAILED_MAX));
    for (const [nodeId, index] of places) if (indices.has(index)) failed.add(nodeId);
  }
  return nodes.filter(({ nodeId }) => failed.has(nodeId));
}

/** The first `limit` nodes from the index `from` on that have a text in their names. */
function matching(nodes: readonly GraphNode[], from: number, text: string, limit: number): GraphNode[] {
  const wanted = text.toLowerCase();
  const found: GraphNode[] = [];
  for (const node of nodes) {
    if (found.length === limit) break;
    if (node.index < from) continue;
    if (`${node.nodeId}\n${node.role ?? ""}`.toLowerCase().includes(wanted)) found.push(node);
  }
  return found;
}

/** A run's agents are numbered as its own package has them, which a blueprint's job may have had another of. */
async function rowsOf(parts: Parts, job: ShownRuns, nodes: readonly GraphNode[]): Promise<readonly Row[]> {
  const rows = nodes.map((node) => ({ node, states: job.runs.map((): NodeState | null => null) }));
  const columns = job.runs.map((run, column) => ({
    run,
    column,
    of: run.bundleFingerprint ?? job.fingerprint,
  }));
  for (const [fingerprint, alike] of Map.groupBy(columns, ({ of }) => of)) {
    const places = fingerprint === job.fingerprint ? null : await placesIn(parts, fingerprint);
    const indices = nodes.map(({ index, nodeId }) => (places === null ? index : places.get(nodeId)));
    const found = await parts.journal.agentStates(
      alike.map(({ run }) => run.runtimeJobId),
      indices.filter((index) => index !== undefined),
    );
    const statuses = new Map(found.map(({ jobId, index, status }) => [`${jobId} ${index}`, status]));
    for (const [at, { states }] of rows.entries()) {
      if (indices[at] === undefined) continue;
      for (const { run, column } of alike) {
        const own = statuses.get(`${run.runtimeJobId} ${indices[at]}`) ?? "pending";
        // The record of an agent tells that the end has cut it off. Older records do not: there it is what had not ended.
        states[column] = nodeState(own, run, () => own === "running" || own === "waiting");
      }
    }
  }
  return rows;
}

const placesOf = (nodes: readonly GraphNode[]): ReadonlyMap<string, number> =>
  new Map(nodes.map(({ nodeId, index }) => [nodeId, index]));

/** Where the nodes of a package are in its graph; none of one whose content was removed. */
async function placesIn(
  { bundles }: Parts,
  fingerprint: string | null,
): Promise<ReadonlyMap<string, number>> {
  if (fingerprint === null) return new Map();
  try {
    return placesOf((await bundles.definition(fingerprint)).graph.nodes);
  } catch (error) {
    if (error instanceof BundleProblem) return new Map();
    throw error;
  }
}
