// Deployments: POST and GET /deployments; GET, PATCH and DELETE /deployments/{deployment_id}; POST …/promote, …/rollback, …/pause,
// …/resume, …/fail; and GET …/events/stream.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { DeploymentController } from "../../deployments/controller.ts";
import type { Action, Changed, Deployments } from "../../deployments/deployments.ts";
import { EVENTS_KEPT, terminalDeploymentEvents } from "../../deployments/events.ts";
import { type Deployment, type DeploymentRecords, deploymentStatuses } from "../../deployments/records.ts";
import { eventType } from "../../engine/event.ts";
import type { GatewayWrites } from "../../launch/records.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { etagOf, knowsCurrent, notModified, stale, type Versioned } from "../core/etag.ts";
import { addRoutes, get, patch, post, remove } from "../core/route.ts";
import { frame } from "../core/sse-chunk.ts";
import { Type } from "../core/type.ts";
import {
  CreateDeploymentBody,
  DeploymentSchema,
  deploymentPatch,
  newDeployment,
  renderDeployment,
  SourceInput,
  StrategyInput,
  UpdateDeploymentBody,
} from "./deployment-view.ts";
import { answerIdempotent, type IdempotencyParts, sendGiven } from "./idempotent.ts";
import { type PageParts, sendJson, sendPage } from "./lists.ts";
import { LastEventIdHeader, openStream, RESUMING, type StreamParts, streamAnswers } from "./run-streams.ts";
import { idempotencyKeyHeader, ifMatchHeader, ifNoneMatchHeader, pageOf, pageQuery } from "./schemas.ts";

const EVENTS_PER_READ = 500;

const DeploymentPageSchema = pageOf(DeploymentSchema, "deployments, newest first");

const DeploymentsQuery = Type.Input({
  status: Type.OneOf(deploymentStatuses, "Deployments in this status only."),
  ...pageQuery,
});

const RollbackBody = Type.Input({
  version: Type.Integer("One that is kept. Default: the last one before that had succeeded.", { minimum: 1 }),
});

const FailBody = Type.Input({
  rollback: Type.Boolean("Whether it goes back to the version before. Default: false; it stays as it is."),
});

/** By the names that clients see. */
export const schemas = {
  Deployment: DeploymentSchema,
  DeploymentPage: DeploymentPageSchema,
  CreateDeployment: CreateDeploymentBody,
  UpdateDeployment: UpdateDeploymentBody,
  DeploymentSource: SourceInput,
  DeploymentStrategy: StrategyInput,
  RollbackDeployment: RollbackBody,
  FailDeployment: FailBody,
};

export interface Parts extends PageParts, StreamParts, IdempotencyParts {
  readonly records: { readonly deployments: DeploymentRecords };
  readonly deployments: Deployments<GatewayWrites>;
  readonly deploymentController: Pick<DeploymentController<GatewayWrites>, "changed">;
  readonly secrets: ConfigurationSecrets;
}

const source = ["requirements_not_met", "resource_unsatisfiable", "blueprint_busy", "conflict"] as const;

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { deployments, deploymentController: controller, records, secrets } = parts;

  addRoutes(api, "deployments", [
    post("/deployments", {
      operationId: "createDeployment",
      summary: "Keep instances of a service graph running",
      description:
        "Each instance is a run whose trigger has kind deployment and the deployment's id. They are started at once; follow the events, or the status.",
      headers: idempotencyKeyHeader,
      body: CreateDeploymentBody,
      answers: { 201: DeploymentSchema },
      problems: source,
      async handle(request, reply) {
        const made: { changed?: Changed; created?: () => void } = {};
        const given = await answerIdempotent(parts, request, async () => {
          const draft = await deployments.prepareCreate(newDeployment(request.body));
          return async (writes) => {
            made.changed = await draft.insert(writes);
            made.created = () => draft.created();
            const { deployment } = made.changed;
            const body = renderDeployment(deployment, secrets);
            const headers = {
              location: `/api/v1/deployments/${deployment.deploymentId}`,
              etag: etagOf(versioned(deployment), body),
            };
            return { status: 201, headers, body };
          };
        });
        if (made.changed !== undefined && !given.isReplay) {
          made.created?.();
          tell(made.changed);
        }
        return sendGiven(reply, given);
      },
    }),

    get("/deployments", {
      operationId: "listDeployments",
      summary: "List deployments",
      query: DeploymentsQuery,
      answers: { 200: DeploymentPageSchema },
      handle: (request, reply) =>
        sendPage<Deployment>(parts, request, reply, {
          rows: (limit, after) => {
            const { status = null } = request.query;
            return records.deployments.deployments({
              status,
              limit,
              after: after === null ? null : String(after[0]),
            });
          },
          positionOf: ({ deploymentId }) => [deploymentId],
          render: (deployment) => renderDeployment(deployment, secrets),
        }),
    }),

    get("/deployments/:deployment_id", {
      operationId: "getDeployment",
      summary: "Get a deployment",
      description:
        "The ETag changes with the deployment and with its instances; If-Match looks at what owners have changed alone.",
      headers: ifNoneMatchHeader,
      answers: { 200: DeploymentSchema, 304: Type.Null("The client has this answer already.") },
      async handle(request, reply) {
        const deployment = await deployments.find(request.params.deployment_id);
        const body = renderDeployment(deployment, secrets);
        const etag = etagOf(versioned(deployment), body);
        reply.header("etag", etag);
        return notModified(request, etag) ? reply.code(304).send() : sendJson(reply, body);
      },
    }),

    patch("/deployments/:deployment_id", {
      operationId: "updateDeployment",
      summary: "Change a deployment, or roll out a new version",
      headers: ifMatchHeader,
      body: UpdateDeploymentBody,
      answers: { 200: DeploymentSchema },
      problems: source,
      async handle(request, reply) {
        const before = await current(request, request.params.deployment_id);
        const changed = await deployments
          .update(before, deploymentPatch(request.body, before))
          .catch((error) => asStale(before, error));
        tell(changed);
        return sendDeployment(reply, changed.deployment);
      },
    }),

    remove("/deployments/:deployment_id", {
      operationId: "deleteDeployment",
      summary: "Delete a deployment: its instances are drained and stopped",
      description: "The jobs of its versions stay, with their runs.",
      headers: ifMatchHeader,
      answers: { 204: Type.Null("It is gone; its instances end soon.") },
      async handle(request, reply) {
        const before = await current(request, request.params.deployment_id);
        tell(await deployments.remove(before).catch((error) => asStale(before, error)));
        return reply.code(204).send();
      },
    }),

    ...plain.map(({ kind, summary, description }) =>
      post(`/deployments/:deployment_id/${kind}`, {
        operationId: `${kind}Deployment`,
        summary,
        description,
        headers: idempotencyKeyHeader,
        answers: { 200: DeploymentSchema },
        problems: ["invalid_transition"],
        handle: (request, reply) => act(request, reply, request.params.deployment_id, { kind }),
      }),
    ),

    post("/deployments/:deployment_id/rollback", {
      operationId: "rollbackDeployment",
      summary: "Go back to a version",
      headers: idempotencyKeyHeader,
      body: RollbackBody,
      answers: { 200: DeploymentSchema },
      problems: ["invalid_transition"],
      handle: (request, reply) =>
        act(request, reply, request.params.deployment_id, {
          kind: "rollback",
          version: request.body?.version ?? null,
        }),
    }),

    post("/deployments/:deployment_id/fail", {
      operationId: "failDeployment",
      summary: "Stop a rollout as failed",
      headers: idempotencyKeyHeader,
      body: FailBody,
      answers: { 200: DeploymentSchema },
      problems: ["invalid_transition"],
      handle: (request, reply) =>
        act(request, reply, request.params.deployment_id, {
          kind: "fail",
          rollback: request.body?.rollback ?? false,
        }),
    }),

    get("/deployments/:deployment_id/events/stream", {
      operationId: "streamDeploymentEvents",
      summary: "Follow a deployment",
      description: `Server-sent events: deployment_created, deployment_{status} at each change of the status, deployment_failure, instance_started, instance_health, instance_serving, instance_draining, instance_stopping, instance_ended; deployment_deleting, and deployment_deleted at last. The newest ${EVENTS_KEPT} are kept. ${RESUMING}`,
      headers: LastEventIdHeader,
      answers: streamAnswers(
        'id: 3\nevent: instance_serving\ndata: {"id":3,"deployment_id":"deployment_01k9z1v7m3e8q2x4c6t8b0n5dh","timestamp":"2026-11-21T09:30:00.000Z","type":"instance_serving","payload":{"instance":1,"run_id":"run_01k9z1v7m3e8q2x4c6t8b0n5dh","version":1,"phase":"serving","health":"passing","node":"a"}}\n\n',
      ),
      async handle(request, reply) {
        const { deploymentId, eventSeq } = await deployments.find(request.params.deployment_id);
        const view = {
          key: `${deploymentId} deployment`,
          jobId: deploymentId,
          read: (seq: number) => records.deployments.deploymentEvents(deploymentId, seq, EVENTS_PER_READ),
          exists: async () => (await records.deployments.deployment(deploymentId)) !== null,
          render: (seq: number, line: string) => frame(seq, eventType(line), line),
          terminalTypes: terminalDeploymentEvents,
        };
        return openStream(request, reply, {
          isEnded: false,
          eventCount: eventSeq,
          serve: async (afterSeq) => () => parts.streams.serve(reply.raw, view, afterSeq),
        });
      },
    }),
  ]);

  function tell({ deployment, lines }: Changed): void {
    if (lines.length > 0) controller.changed(deployment, lines);
  }

  function sendDeployment(reply: FastifyReply, deployment: Deployment): FastifyReply {
    const body = renderDeployment(deployment, secrets);
    return sendJson(reply.header("etag", etagOf(versioned(deployment), body)), body);
  }

  /** Does what an owner asks for, in a transaction with the stored answer. */
  async function act(
    request: FastifyRequest,
    reply: FastifyReply,
    deploymentId: string,
    action: Action,
  ): Promise<FastifyReply> {
    const done: { changed?: Changed } = {};
    const given = await answerIdempotent(parts, request, async () => async (writes) => {
      done.changed = await deployments.act(writes, deploymentId, action);
      const { deployment } = done.changed;
      const body = renderDeployment(deployment, secrets);
      return { status: 200, headers: { etag: etagOf(versioned(deployment), body) }, body };
    });
    if (done.changed !== undefined && !given.isReplay) tell(done.changed);
    return sendGiven(reply, given);
  }

  /** The deployment, if If-Match has its current revision. @throws Problem */
  async function current(request: FastifyRequest, deploymentId: string): Promise<Deployment> {
    const deployment = await deployments.find(deploymentId);
    if (!knowsCurrent(request, versioned(deployment))) throw staleNow(deployment);
    return deployment;
  }

  /** A change that lost a race is answered with the current ETag. */
  async function asStale({ deploymentId }: Deployment, error: unknown): Promise<never> {
    const isLost = error instanceof DomainError && error.code === "precondition_failed";
    throw isLost ? staleNow(await deployments.find(deploymentId)) : error;
  }

  const staleNow = (deployment: Deployment) =>
    stale(etagOf(versioned(deployment), renderDeployment(deployment, secrets)));
}

const plain = [
  {
    kind: "promote",
    summary: "Let a rollout go on behind its canaries, or its second set",
    description: "A deployment that awaits its promotion goes on to all instances.",
  },
  {
    kind: "pause",
    summary: "Pause a rollout",
    description:
      "No instance of the new version is started or begins to serve until it is resumed; those that serve go on.",
  },
  { kind: "resume", summary: "Let a paused rollout go on", description: "Its deadlines begin anew." },
] as const;

const versioned = ({ deploymentId, revision }: Deployment): Versioned => ({ id: deploymentId, revision });
