// Faults of deployments: what serves when, that no healthy instance leaves too early, and that each is started once.

import { type Mutation, mutationsOf } from "./mutation.ts";

const machine = ["src/deployments/step.test.ts"];
const world = ["test/simulation/deployments.test.ts"];
const rollout = mutationsOf("src/deployments/rollout.ts", machine);
const health = mutationsOf("src/deployments/health.ts", machine);
const step = mutationsOf("src/deployments/step.ts", machine);
const clocks = mutationsOf("src/deployments/step.ts", world);
const controller = mutationsOf("src/deployments/controller.ts", world);

const places = mutationsOf("src/deployments/places.ts", ["src/deployments/places.test.ts"]);
const takeover = mutationsOf("src/operations/takeover.ts", ["src/operations/takeover.test.ts"]);
const looks = mutationsOf("src/deployments/controller.ts", ["src/deployments/controller.test.ts"]);

export const deploymentMutations: readonly Mutation[] = [
  places(
    "all instances are given to one node",
    "ofVersion.of(`${start.version} ${node}`), all.of(node), -left]",
    "0]",
  ),
  places("instances are given to nodes without room", "left > 0 ? 0 : 1, ", ""),
  places("an instance is given to a node that takes nothing on", "node.isReady && hasAll", "hasAll"),
  places(
    "what may run elsewhere is asked of the node of an instance",
    'node.config.kind === "executor" && staysWithJob(graph, node)',
    'node.config.kind === "executor"',
  ),
  takeover(
    "runs that were given to a program wait until it is told of them",
    "return isOwn || lost.length > 0;",
    "return lost.length > 0;",
  ),
  takeover(
    "a drained program keeps the runs that it has not launched",
    "if (isOwn) await records.leaveRuns(owner);",
    "",
  ),
  looks(
    "programs without deployments look for them every two seconds",
    "delayMs = hasSome || this.#hasChanged ? ROUND_MS : LOOK_MS;",
    "delayMs = ROUND_MS;",
  ),
  looks(
    "the first deployment waits until somebody looks",
    "    this.#cancelRound();\n    this.#roundIn(0);\n",
    "",
  ),
  looks(
    "a deployment that is made while one looks waits for the next look but one",
    "hasSome || this.#hasChanged ?",
    "hasSome ?",
  ),
  step(
    "a rollout awaits its promotion though its strategy asks for none any more",
    'const isWaiting = status === "awaiting_promotion";',
    "const isWaiting = false;",
  ),
  rollout(
    "where a rollout has failed, no more instances are started than there were",
    'status === "failed" ? count : stable.count',
    "stable.count",
  ),
  rollout(
    "where a rollout has failed, instances of the version before leave when fewer are asked for",
    "Number(isStable(a)) - Number(isStable(b))",
    "0",
  ),
  {
    fault: "why an instance ended is not said when its command failed",
    file: "src/store/sql/deployments.ts",
    search: "row.failure_json ?? row.job_failure_json",
    replacement: "row.failure_json",
    tests: ["test/integration/cli-deployments.test.ts"],
  },
  health(
    "an instance serves as soon as it is healthy",
    "nowMs - healthSinceMs >= strategy.minHealthySeconds * 1_000",
    "nowMs >= healthSinceMs",
  ),
  health(
    "a version whose instances end is started again and again",
    "crashes >= CRASHES_MAX",
    "crashes > 1_000",
  ),
  health(
    "instances that crash are started again without a wait",
    "return crashedAtMs + Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (crashes - 1));",
    "return crashedAtMs;",
  ),
  health(
    "a rollout without progress goes on for ever",
    'status === "running" && nowMs >= progressAtMs',
    'status === "failed" && nowMs >= progressAtMs',
  ),
  rollout(
    "a healthy old instance leaves while fewer healthy ones than count remain",
    "if (remain < (isCritical(one) ? 1 : count)) continue;",
    "if (remain < 1) continue;",
  ),
  rollout(
    "the last healthy instance leaves",
    "if (remain < (isCritical(one) ? 1 : count)) continue;",
    "if (remain < (isCritical(one) ? 0 : count)) continue;",
  ),
  rollout(
    "instances of a second set serve before all of them are healthy",
    "return !(isPromoted && isStageReached(deployment, nowMs));",
    "return !isPromoted;",
  ),
  rollout(
    "all instances are replaced without a promotion",
    "isStaged(deployment) ? Math.min(strategy.canaries, count) : count",
    "isStaged(deployment) ? count : count",
  ),
  rollout(
    "the last old instance leaves before the canaries are promoted",
    "isStaged(deployment) ? others.slice(0, -1) : others",
    "others",
  ),
  rollout(
    "more instances than count and max_parallel are started",
    "- instances.length;",
    "- instances.filter(isLive).length;",
  ),
  rollout(
    "instances of a version that has failed serve",
    "isOfTarget(deployment)(one) ? waits : one.version !== deployment.stable?.version",
    "isOfTarget(deployment)(one) ? waits : false",
  ),
  rollout("a paused rollout lets instances serve", 'deployment.status === "paused" ||\n', ""),
  step(
    "an instance that is drained is stopped at once",
    'phase === "draining" && (stopAtMs ?? 0) <= nowMs',
    'phase === "draining" && stopAtMs !== null',
  ),
  step(
    "a rollback waits for a promotion",
    'if (status !== "running" || isStaged(deployment) ||',
    'if (status !== "running" || isRollingBack ||',
  ),
  clocks(
    "a drain ends by the clock of a program that is gone",
    "one.stopAtMs !== null && one.stopAtMs > latestMs",
    "one.stopAtMs === latestMs",
  ),
  controller(
    "a step that was computed from an older state is written",
    "now === null || now.changes !== before.changes",
    "now === null",
  ),
  controller(
    "runs of instances that stop are not cancelled",
    "for (const runId of stops) await runs.cancel(writes, runId);",
    "for (const runId of stops) await Promise.resolve(runId);",
  ),
  controller(
    "deployments are not looked at again when an event was lost",
    "if (this.#isOnDuty && (!isRecent || known.changes !== changes))",
    "if (this.#isOnDuty && known === undefined)",
  ),
  {
    fault: "services of instances that do not serve are found",
    file: "src/services/registry.ts",
    search: "!leftOut.includes(job.runId)",
    replacement: "job.runId !== leftOut[0]",
    tests: ["src/services/services.test.ts"],
  },
  {
    fault: "instances that serve are out of service, and others are not",
    file: "src/store/sql/deployments.ts",
    search: '.where("phase", "<>", sql.lit("serving"))',
    replacement: '.where("phase", "=", sql.lit("serving"))',
    tests: ["src/store/sql/deployments.test.ts"],
  },
  {
    fault: "a graph that ends by itself is deployed",
    file: "src/launch/deployed-runs.ts",
    search: 'if (draft.graph.type !== "service") throw isBatch();',
    replacement: "",
    tests: ["test/gateway/deployments.test.ts"],
  },
];
