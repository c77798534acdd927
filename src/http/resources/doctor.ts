// GET /runtime/doctor: checks of the machine by the running server.

import type { FastifyInstance } from "fastify";
import type { Catalog } from "../../blueprints/catalog.ts";
import { isoTime } from "../../engine/event.ts";
import type { SandboxEngineName } from "../../engine/sandbox.ts";
import { type Check, examinationOf } from "../../execution/examination.ts";
import {
  checkDiskSync,
  checkHome,
  checkNode,
  checkProc,
  checkTools,
  type Finding,
  tryToListen,
} from "../../execution/machine.ts";
import { checkSandbox } from "../../execution/sandbox/check.ts";
import { addRoutes, get } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { type HealthParts, whyUnavailable } from "./system.ts";

const DoctorSchema = Type.Object(
  {
    status: Type.OneOf(["ok", "warn", "fail"], "The worst of its checks."),
    checked_at: Type.Time("When the checks ended; they are made again after a few seconds."),
    checks: Type.Array(
      Type.Object({
        name: Type.String({ examples: ["disk"] }),
        status: Type.OneOf(["ok", "warn", "fail"]),
        text: Type.String("What was found.", { examples: ["76.5 GiB free"] }),
        fix: Type.Optional(Type.String("What to do about it.")),
      }),
    ),
  },
  "What was found when the machine was looked at.",
);

/** By the names that clients see. */
export const schemas = { Doctor: DoctorSchema };

export interface Parts extends HealthParts {
  readonly home: string;
  /** The folders of SVC_BLUEPRINT_CATALOG. */
  readonly catalog: Catalog;
  /** Of the place of files beside the home; null when there is none. */
  readonly checkFiles: () => Promise<Finding | null>;
  readonly sandboxEngine: SandboxEngineName;
  readonly nowMs: () => number;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const examine = examinationOf({ checks: checksOf(parts), nowMs: parts.nowMs });
  addRoutes(api, "runtime", [
    get("/runtime/doctor", {
      operationId: "getRuntimeDoctor",
      summary: "Check the machine, with a fix for each problem",
      description:
        "The disk, the store, and the programs that workers are run with. Each check is bounded in time; a result is good for a few seconds.",
      answers: { 200: DoctorSchema },
      handle: async () => {
        const { findings, checkedAtMs } = await examine();
        return {
          status: worst(findings),
          checked_at: isoTime(checkedAtMs),
          checks: findings.map(({ state, ...finding }) => ({ ...finding, status: state })),
        };
      },
    }),
  ]);
}

function checksOf(parts: Parts): readonly Check[] {
  const { home } = parts;
  const one = (name: string, find: () => Finding | Promise<Finding>): Check => ({
    name,
    run: async () => [await find()],
  });
  return [
    one("node", checkNode),
    one("store", async () => storeFinding(await whyUnavailable(parts))),
    { name: "home", run: () => checkHome(home, "SVC_HOME") },
    { name: "files", run: async () => [(await parts.checkFiles()) ?? []].flat() },
    one("disk sync", () => checkDiskSync(home)),
    one("ports", freePort),
    { name: "tools", run: checkTools },
    one("sandbox", () => checkSandbox(parts.sandboxEngine)),
    one("orphans", checkProc),
    one("catalog", () => catalogFinding(parts)),
  ];
}

function storeFinding(problem: string | null): Finding {
  if (problem === null) return { name: "store", state: "ok", text: "SQLite takes writes" };
  return {
    name: "store",
    state: "fail",
    text: problem,
    fix: "Runs resume automatically once it is fixed.",
  };
}

const NAMED_MAX = 5;

async function catalogFinding({ catalog }: Parts): Promise<Finding> {
  const entries = await catalog.entries();
  const problems = (await catalog.problems()).map(({ message }) => message);
  const broken = entries.filter(({ kind }) => kind === "broken").map(({ blueprintId }) => blueprintId);
  if (broken.length > 0) problems.push(`${broken.length} broken: ${broken.slice(0, NAMED_MAX).join(", ")}`);
  const count = `${entries.length} blueprint${entries.length === 1 ? "" : "s"}`;
  if (problems.length === 0) return { name: "catalog", state: "ok", text: count };
  const fix = "GET /api/v1/blueprints/{blueprint_id} lists the mistakes of a broken one.";
  return { name: "catalog", state: "warn", text: [count, ...problems.slice(0, NAMED_MAX)].join("; "), fix };
}

async function freePort(): Promise<Finding> {
  const refused = await tryToListen("127.0.0.1", 0);
  if (refused === null) return { name: "ports", state: "ok", text: "a free port can be had" };
  const fix = "Services need ports of their own: end programs that hold many, or raise the system's limits.";
  return { name: "ports", state: "fail", text: `no free port can be had (${refused})`, fix };
}

function worst(findings: readonly Finding[]): Finding["state"] {
  if (findings.some(({ state }) => state === "fail")) return "fail";
  return findings.some(({ state }) => state === "warn") ? "warn" : "ok";
}
