// GET /runtime/status, /runtime/health, /runtime/doctor: the runtime that this gateway has in it.

import type { FastifyInstance } from "fastify";
import { isoTime } from "../../engine/event.ts";
import {
  checkDiskSync,
  checkHome,
  checkNode,
  checkProc,
  checkTools,
  type Finding,
  tryToListen,
} from "../../execution/machine.ts";
import { addRoutes, get } from "../core/route.ts";
import { type Check, Examination } from "./examination.ts";
import { lagShown } from "./metrics.ts";
import { DoctorSchema, RuntimeHealthSchema, RuntimeStatusSchema } from "./schemas/system.ts";
import type { GatewayServices } from "./services.ts";
import { healthOf, problemOf, uptimeSeconds } from "./system.ts";

export function runtimeViewRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { engine, launcher, pools, stopping } = services;

  const examination = new Examination({ checks: checksOf(services), nowMs: services.nowMs });
  addRoutes(api, "runtime", [
    get("/runtime/status", {
      operationId: "getRuntimeStatus",
      summary: "See what the runtime is doing",
      answers: { 200: RuntimeStatusSchema },
      handle: async () => {
        const problem = await problemOf(services);
        return {
          status: stopping.aborted ? "stopping" : problem === null ? "running" : "degraded",
          version: services.version,
          started_at: isoTime(services.startedAtMs),
          uptime_seconds: uptimeSeconds(services),
          open_jobs: engine.openJobs,
          launches_waiting: launcher.waiting,
          executor_pools: pools.snapshot(),
          event_loop_lag_ms: lagShown(services.metrics.lag()),
          ...(problem !== null && { detail: problem }),
        };
      },
    }),

    get("/runtime/health", {
      operationId: "getRuntimeHealth",
      summary: "See whether the runtime takes work",
      description: "503 with the same body while it does not.",
      answers: { 200: RuntimeHealthSchema, 503: RuntimeHealthSchema },
      handle: (_request, reply) => healthOf(services, reply),
    }),

    get("/runtime/doctor", {
      operationId: "getRuntimeDoctor",
      summary: "Look at the machine, and say how to mend what is wrong",
      description:
        "The disk, the store, and the programs that workers are run with. Each check is bounded in time; a result is good for a few seconds.",
      answers: { 200: DoctorSchema },
      handle: async () => {
        const { findings, checkedAtMs } = await examination.result();
        return {
          status: worst(findings),
          checked_at: isoTime(checkedAtMs),
          checks: findings.map(({ state, ...finding }) => ({ ...finding, status: state })),
        };
      },
    }),
  ]);
}

function checksOf(services: GatewayServices): readonly Check[] {
  const { home } = services;
  const one = (name: string, find: () => Finding | Promise<Finding>): Check => ({
    name,
    run: async () => [await find()],
  });
  return [
    one("node", checkNode),
    one("store", async () => storeFinding(await problemOf(services))),
    { name: "home", run: () => checkHome(home, "SVC_HOME") },
    one("disk sync", () => checkDiskSync(home)),
    one("ports", freePort),
    { name: "tools", run: checkTools },
    one("orphans", checkProc),
    one("catalog", () => catalogFinding(services)),
  ];
}

function storeFinding(problem: string | null): Finding {
  if (problem === null) return { name: "store", state: "ok", text: "SQLite takes writes" };
  return {
    name: "store",
    state: "fail",
    text: problem,
    mend: "Runs carry on by themselves once it is mended.",
  };
}

const NAMED_MAX = 5;

async function catalogFinding({ catalog }: GatewayServices): Promise<Finding> {
  const entries = await catalog.entries();
  const problems = (await catalog.problems()).map(({ message }) => message);
  const broken = entries.filter(({ kind }) => kind === "broken").map(({ blueprintId }) => blueprintId);
  if (broken.length > 0) problems.push(`${broken.length} broken: ${broken.slice(0, NAMED_MAX).join(", ")}`);
  const count = `${entries.length} blueprint${entries.length === 1 ? "" : "s"}`;
  if (problems.length === 0) return { name: "catalog", state: "ok", text: count };
  const mend = "GET /api/v1/blueprints/{blueprint_id} lists the mistakes of a broken one.";
  return { name: "catalog", state: "warn", text: [count, ...problems.slice(0, NAMED_MAX)].join("; "), mend };
}

async function freePort(): Promise<Finding> {
  const refused = await tryToListen("127.0.0.1", 0);
  if (refused === null) return { name: "ports", state: "ok", text: "a free port can be had" };
  const mend = "Services need ports of their own: end programs that hold many, or raise the system's limits.";
  return { name: "ports", state: "fail", text: `no free port can be had (${refused})`, mend };
}

function worst(findings: readonly Finding[]): Finding["state"] {
  if (findings.some(({ state }) => state === "fail")) return "fail";
  return findings.some(({ state }) => state === "warn") ? "warn" : "ok";
}
