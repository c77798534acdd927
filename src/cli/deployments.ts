// `troupe deploy` and `troupe deployments …`: instances of services that are kept running, and how they are replaced.

import { existsSync } from "node:fs";
import type { Deployment, DeploymentPatch } from "../../sdk/src/index.ts";
import { deploymentStatuses, strategyKinds } from "../deployments/records.ts";
import { readTarget, uploadTarget } from "./bundles.ts";
import { type Call, printAnswer, UsageError } from "./command.ts";
import { checkedId, idOf } from "./ids.ts";
import { overridesOf } from "./input.ts";
import { countOf, limitOf, oneOf, printList } from "./lists.ts";
import { ago, fieldLines } from "./record-text.ts";
import { statusWord } from "./result-text.ts";
import type { ServerCall } from "./session.ts";
import type { Style } from "./terminal.ts";
import { cleanText } from "./text.ts";

const rowStyles: Readonly<Partial<Record<Deployment["status"], Style>>> = {
  paused: "yellow",
  awaiting_promotion: "yellow",
  rolled_back: "yellow",
  failed: "red",
};

/** Where a rollout stops by itself. */
const RESTING: ReadonlySet<string> = new Set([
  "succeeded",
  "failed",
  "rolled_back",
  "awaiting_promotion",
  "paused",
]);

export async function deploy(call: ServerCall): Promise<number> {
  const id = call.text("update");
  const config = overridesOf(call);
  const settings = { ...settingsOf(call), ...(config !== null && { config }) };
  const { name, source } = await sourceOf(call);
  const deployment =
    id === null
      ? await call.client.deployments.create({ ...settings, source, name: call.text("name") ?? name })
      : await call.client.deployments.update(anyVersion(checkedId(id, "deployment")), {
          ...settings,
          source,
        });
  if (call.flag("detach") || call.flag("json"))
    return printAnswer(call, deployment, () => cleanText(deployment.deployment_id));
  call.terminal.note(`${deployment.deployment_id}, version ${deployment.version}`);
  return watchRollout(call, deployment);
}

export async function list(call: ServerCall): Promise<number> {
  const query = { status: oneOf(call, "status", deploymentStatuses) };
  return printList<Deployment>(call, {
    limit: limitOf(call),
    items: (pageSize) => call.client.deployments.list({ ...query, page_size: pageSize }),
    head: ["DEPLOYMENT", "STATUS", "VERSION", "HEALTHY", "CREATED", "NAME"],
    row: (deployment) => [
      deployment.deployment_id,
      deployment.status,
      String(deployment.version),
      `${deployment.healthy}/${deployment.desired}`,
      ago(deployment.created_at),
      deployment.name,
    ],
    style: ({ status }) => rowStyles[status] ?? null,
    nothing: "No deployments. `troupe deploy` makes one.",
  });
}

export async function show(call: ServerCall): Promise<number> {
  const deployment = await call.client.deployments.get(idOf(call, "deployment"));
  return printAnswer(call, deployment, () => deploymentLines(deployment, call));
}

export async function watch(call: ServerCall): Promise<number> {
  return watchRollout(call, await call.client.deployments.get(idOf(call, "deployment")));
}

export async function promote(call: ServerCall): Promise<number> {
  return printStatus(call, await call.client.deployments.promote(idOf(call, "deployment")));
}

export async function rollback(call: ServerCall): Promise<number> {
  const version = countOf(call, "version", { example: 3 }) ?? undefined;
  return printStatus(call, await call.client.deployments.rollback(idOf(call, "deployment"), version));
}

export async function pause(call: ServerCall): Promise<number> {
  return printStatus(call, await call.client.deployments.pause(idOf(call, "deployment")));
}

export async function resume(call: ServerCall): Promise<number> {
  return printStatus(call, await call.client.deployments.resume(idOf(call, "deployment")));
}

export async function fail(call: ServerCall): Promise<number> {
  const id = idOf(call, "deployment");
  return printStatus(call, await call.client.deployments.fail(id, call.flag("rollback") === true));
}

export async function remove(call: ServerCall): Promise<number> {
  const id = idOf(call, "deployment");
  await call.client.deployments.delete(anyVersion(id));
  return printAnswer(
    call,
    { deployment_id: id, deleted: true },
    () => `${id} deleted; its instances end soon`,
  );
}

/** A person who changes a deployment by its id has not read a version of it. */
const anyVersion = (deploymentId: string) => ({ deployment_id: deploymentId, etag: "*" });

function printStatus(call: ServerCall, deployment: Deployment): number {
  return printAnswer(
    call,
    deployment,
    () => `${cleanText(deployment.deployment_id)} ${deployment.status}, version ${deployment.version}`,
  );
}

// ---------------------------------------------------------------------------------- what was asked for

/** What is on this machine is uploaded. */
async function sourceOf(
  call: ServerCall,
): Promise<{ readonly name: string; readonly source: NonNullable<DeploymentPatch["source"]> }> {
  const [given = ""] = call.words;
  if (given.startsWith("bundle_")) return { name: given, source: { bundle_id: checkedId(given, "bundle") } };
  if (!given.includes("/") && !existsSync(given))
    return { name: given, source: { blueprint_id: checkedId(given, "blueprint") } };
  const { bundle_id: bundleId, name } = await uploadTarget(call, readTarget(call));
  return { name, source: { bundle_id: bundleId } };
}

function settingsOf(call: Call) {
  const count = call.text("count");
  const onFailure = oneOf(call, "on-failure", ["rollback", "stay"]);
  const strategy = {
    ...given("kind", oneOf(call, "strategy", strategyKinds)),
    ...given("max_parallel", countOf(call, "max-parallel", { example: 2 })),
    ...given("canaries", countOf(call, "canaries", { example: 1 })),
    ...given("min_healthy_seconds", secondsOf(call, "min-healthy")),
    ...given("healthy_deadline_seconds", secondsOf(call, "healthy-deadline")),
    ...given("progress_deadline_seconds", secondsOf(call, "progress-deadline")),
    ...given("drain_seconds", secondsOf(call, "drain")),
    ...(call.flag("auto-promote") && { auto_promote: true }),
    ...(onFailure !== undefined && { auto_rollback: onFailure === "rollback" }),
  };
  return {
    ...given("name", call.text("name")),
    ...(count !== null && { count: wholeNumber(count, "count") }),
    ...(Object.keys(strategy).length > 0 && { strategy }),
  };
}

/** A field that was asked for. */
const given = <Name extends string, Value>(name: Name, value: Value | null | undefined) =>
  (value == null ? {} : { [name]: value }) as { readonly [key in Name]?: Value };

function secondsOf(call: Call, option: string): number | null {
  const text = call.text(option);
  return text === null ? null : wholeNumber(text, option);
}

function wholeNumber(text: string, option: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new UsageError(`--${option} needs a whole number: --${option} 10`);
}

// ---------------------------------------------------------------------------------- what is shown

/** Prints a line for each event of the rollout until it rests. @returns 1 when it has failed, or gone back by itself */
async function watchRollout(call: ServerCall, from: Deployment): Promise<number> {
  const { client, terminal } = call;
  const { deployment_id: id } = from;
  if (!RESTING.has(from.status))
    for await (const { type, payload } of client.deployments.follow(id, { after: from.last_event_id })) {
      terminal.note(eventText(type, payload));
      if (type === "deployment_deleted") return 0;
      if (RESTING.has(type.replace("deployment_", ""))) break;
    }
  const deployment = await client.deployments.get(id);
  printAnswer(call, deployment, () => deploymentLines(deployment, call));
  return deployment.status === "failed" || deployment.status === "rolled_back" ? 1 : 0;
}

function eventText(type: string, payload: Readonly<Record<string, unknown>>): string {
  const { instance, version, phase, health, desired, healthy, reason } = payload;
  if (reason !== undefined) return cleanText(`version ${version}: ${reason}`);
  if (instance === undefined)
    return cleanText(
      `${type.replace("deployment_", "")}: version ${version}, ${healthy} of ${desired} healthy`,
    );
  return cleanText(`instance ${instance} (version ${version}): ${phase}, ${health}`);
}

function deploymentLines(deployment: Deployment, call: ServerCall): readonly string[] {
  const { paint } = call.terminal;
  const { strategy, last_failure: failure, stable_version: stable } = deployment;
  return [
    `${cleanText(deployment.deployment_id)} ${statusWord(deployment.status, paint)}`,
    ...fieldLines([
      ["name", deployment.name],
      ["source", deployment.source.bundle_id ?? deployment.source.blueprint_id ?? null],
      [
        "version",
        stable === deployment.version ? stable : `${deployment.version}, before: ${stable ?? "none"}`,
      ],
      ["healthy", `${deployment.healthy} of ${deployment.desired}`],
      ["strategy", `${strategy.kind}, ${strategy.max_parallel} at a time`],
      ...deployment.instances.map(
        (one, i) =>
          [
            i === 0 ? "instances" : "",
            `${one.instance} version ${one.version} ${one.phase} ${one.health} ${one.run_id} ${one.node ?? ""}`.trim(),
          ] as const,
      ),
      ["last failure", failure && `version ${failure.version}, ${ago(failure.at)}: ${failure.reason}`],
      ["versions", deployment.versions.map(({ version }) => version).join(", ")],
      ["created", ago(deployment.created_at)],
    ]),
  ];
}
