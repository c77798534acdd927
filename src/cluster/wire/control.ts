// Control of a job as messages between nodes: what is asked, and the result.
//
// - What a peer sends is checked as far as this node relies on it: a message that is not of the protocol is a WireProblem.
// - Values that the engine takes as JSON travel as JSON texts.

import { create } from "@bufbuild/protobuf";
import type { Answered, PersonsAnswer } from "../../engine/job/human-answers.ts";
import type { Letter } from "../../engine/job/messages.ts";
import type { ExternalMessage } from "../../engine/job-control.ts";
import type { HumanRequest } from "../../engine/journal.ts";
import type { JsonValue } from "../../engine/json.ts";
import type { Envelope } from "../../engine/message.ts";
import { isPriority, type Priority } from "../../engine/share.ts";
import {
  AnswerHumanSchema,
  CancelSchema,
  ChangedSchema,
  type ControlRequest,
  type ControlResponse,
  DeadLetterSchema,
  DeliveredSchema,
  DeliverSchema,
  HumanAnswerSchema,
  HumanRequestSchema,
  NotHeldSchema,
  PauseSchema,
  PrioritizeSchema,
  ResumeSchema,
  RetriedSchema,
  RetryDeadLettersSchema,
  UnavailableSchema,
  UnknownAgentSchema,
  UnknownRequestSchema,
  UnwritableSchema,
  type HumanRequest as WireHumanRequest,
} from "./gen/svc/node/v1/node_pb.ts";

export type ControlAction =
  | { readonly kind: "cancel" | "pause" | "resume" }
  | { readonly kind: "prioritize"; readonly priority: Priority }
  | { readonly kind: "deliver"; readonly message: ExternalMessage }
  | { readonly kind: "answer_human"; readonly given: PersonsAnswer }
  | { readonly kind: "retry_dead_letters"; readonly letters: readonly Letter[] };

export type ControlOutcome =
  /** The callee does not have the job open. */
  | { readonly kind: "not_held" }
  | { readonly kind: "changed"; readonly status: string }
  | { readonly kind: "accepted"; readonly messageId: string }
  | { readonly kind: "unknown_agent" }
  | Answered
  | { readonly kind: "retried"; readonly deadLetterIds: readonly string[] }
  | { readonly kind: "unavailable"; readonly message: string; readonly mayRetry: boolean }
  | { readonly kind: "unwritable"; readonly message: string };

/** A peer has sent what the protocol does not know. */
export class WireProblem extends Error {
  override readonly name = "WireProblem";
}

/** Fields that a message lacks are undefined there and null here. */
export const orNull = <Value>(value: Value | undefined): Value | null => value ?? null;
export const orAbsent = <Value>(value: Value | null): Value | undefined => value ?? undefined;

// ---------------------------------------------------------------------------------------------- requests

export function actionToWire(action: ControlAction): ControlRequest["action"] {
  switch (action.kind) {
    case "cancel":
      return { case: "cancel", value: create(CancelSchema) };
    case "pause":
      return { case: "pause", value: create(PauseSchema) };
    case "resume":
      return { case: "resume", value: create(ResumeSchema) };
    case "prioritize":
      return { case: "prioritize", value: create(PrioritizeSchema, { priority: action.priority }) };
    case "deliver": {
      const { agentId, type, body, correlationId, ttlMs } = action.message;
      const value = create(DeliverSchema, {
        agentId,
        type,
        bodyJson: JSON.stringify(body),
        correlationId: orAbsent(correlationId),
        ttlMs: orAbsent(ttlMs),
      });
      return { case: "deliver", value };
    }
    case "answer_human": {
      const { requestId, decision, comment, dataJson, principal } = action.given;
      const value = create(AnswerHumanSchema, {
        requestId,
        decision,
        comment: orAbsent(comment),
        dataJson: orAbsent(dataJson),
        principal,
      });
      return { case: "answerHuman", value };
    }
    case "retry_dead_letters": {
      const letters = action.letters.map(({ deadLetterId, agentId, message, changedBy }) =>
        create(DeadLetterSchema, {
          deadLetterId,
          agentId: orAbsent(agentId),
          messageJson: JSON.stringify(message),
          changedBy,
        }),
      );
      return { case: "retryDeadLetters", value: create(RetryDeadLettersSchema, { letters }) };
    }
    default:
      return action satisfies never;
  }
}

/** @throws WireProblem */
export function actionFromWire(action: ControlRequest["action"]): ControlAction {
  switch (action.case) {
    case "cancel":
    case "pause":
    case "resume":
      return { kind: action.case };
    case "prioritize": {
      const { priority } = action.value;
      if (!isPriority(priority)) throw new WireProblem(`There is no priority ${JSON.stringify(priority)}.`);
      return { kind: "prioritize", priority };
    }
    case "deliver": {
      const { agentId, type, bodyJson, correlationId, ttlMs } = action.value;
      const message = {
        agentId,
        type,
        body: parsed(bodyJson) as JsonValue,
        correlationId: orNull(correlationId),
        ttlMs: orNull(ttlMs),
      };
      return { kind: "deliver", message };
    }
    case "answerHuman": {
      const { requestId, decision, comment, dataJson, principal } = action.value;
      if (dataJson !== undefined) parsed(dataJson);
      const given = {
        requestId,
        decision,
        comment: orNull(comment),
        dataJson: orNull(dataJson),
        principal,
      };
      return { kind: "answer_human", given };
    }
    case "retryDeadLetters": {
      const letters = action.value.letters.map(({ deadLetterId, agentId, messageJson, changedBy }) => ({
        deadLetterId,
        agentId: orNull(agentId),
        message: parsed(messageJson) as Envelope,
        ...(changedBy !== undefined && { changedBy }),
      }));
      return { kind: "retry_dead_letters", letters };
    }
    case undefined:
      throw new WireProblem("The request has no action that this version knows.");
    default:
      return action satisfies never;
  }
}

export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new WireProblem("A value of the message is no JSON.");
  }
}

// ---------------------------------------------------------------------------------------------- responses

export function outcomeToWire(outcome: ControlOutcome): ControlResponse["result"] {
  switch (outcome.kind) {
    case "not_held":
      return { case: "notHeld", value: create(NotHeldSchema) };
    case "changed":
      return { case: "changed", value: create(ChangedSchema, { status: outcome.status }) };
    case "accepted":
      return { case: "delivered", value: create(DeliveredSchema, { messageId: outcome.messageId }) };
    case "unknown_agent":
      return { case: "unknownAgent", value: create(UnknownAgentSchema) };
    case "answered":
      return { case: "answered", value: requestToWire(outcome.request) };
    case "already_closed":
      return { case: "alreadyClosed", value: requestToWire(outcome.request) };
    case "unknown_request":
      return { case: "unknownRequest", value: create(UnknownRequestSchema) };
    case "retried": {
      const { deadLetterIds } = outcome;
      return { case: "retried", value: create(RetriedSchema, { deadLetterIds: [...deadLetterIds] }) };
    }
    case "unavailable": {
      const { message, mayRetry } = outcome;
      return { case: "unavailable", value: create(UnavailableSchema, { message, mayRetry }) };
    }
    case "unwritable":
      return { case: "unwritable", value: create(UnwritableSchema, { message: outcome.message }) };
    default:
      return outcome satisfies never;
  }
}

/** @throws WireProblem */
export function outcomeFromWire(result: ControlResponse["result"]): ControlOutcome {
  switch (result.case) {
    case "notHeld":
      return { kind: "not_held" };
    case "changed":
      return { kind: "changed", status: result.value.status };
    case "delivered":
      return { kind: "accepted", messageId: result.value.messageId };
    case "unknownAgent":
      return { kind: "unknown_agent" };
    case "answered":
      return { kind: "answered", request: requestFromWire(result.value) };
    case "alreadyClosed":
      return { kind: "already_closed", request: requestFromWire(result.value) };
    case "unknownRequest":
      return { kind: "unknown_request" };
    case "retried":
      return { kind: "retried", deadLetterIds: result.value.deadLetterIds };
    case "unavailable":
      return { kind: "unavailable", message: result.value.message, mayRetry: result.value.mayRetry };
    case "unwritable":
      return { kind: "unwritable", message: result.value.message };
    case undefined:
      throw new WireProblem("The answer has no result that this version knows.");
    default:
      return result satisfies never;
  }
}

function requestToWire(request: HumanRequest): WireHumanRequest {
  const {
    response,
    taskSeq,
    defaultAction,
    expiresAtMs,
    eventSeq,
    allowedDecisions,
    dataSchemaJson,
    ...same
  } = request;
  return create(HumanRequestSchema, {
    ...same,
    eventSeq: BigInt(eventSeq),
    allowedDecisions: [...allowedDecisions],
    dataSchemaJson: orAbsent(dataSchemaJson),
    taskSeq: taskSeq === null ? undefined : BigInt(taskSeq),
    defaultAction: orAbsent(defaultAction),
    expiresAtMs: orAbsent(expiresAtMs),
    response:
      response === null
        ? undefined
        : create(HumanAnswerSchema, {
            decision: response.decision,
            comment: orAbsent(response.comment),
            dataJson: orAbsent(response.dataJson),
            principal: orAbsent(response.principal),
            respondedAtMs: response.respondedAtMs,
          }),
  });
}

const statuses: readonly string[] = ["pending", "answered", "timed_out"] satisfies HumanRequest["status"][];

function requestFromWire(wire: WireHumanRequest): HumanRequest {
  const { response, status } = wire;
  if (!statuses.includes(status)) throw new WireProblem("A request to a person has an unknown status.");
  return {
    requestId: wire.requestId,
    eventSeq: Number(wire.eventSeq),
    agentId: wire.agentId,
    taskSeq: wire.taskSeq === undefined ? null : Number(wire.taskSeq),
    prompt: wire.prompt,
    allowedDecisions: wire.allowedDecisions,
    dataSchemaJson: orNull(wire.dataSchemaJson),
    defaultAction: orNull(wire.defaultAction),
    status: status as HumanRequest["status"],
    createdAtMs: wire.createdAtMs,
    expiresAtMs: orNull(wire.expiresAtMs),
    response:
      response === undefined
        ? null
        : {
            decision: response.decision,
            comment: orNull(response.comment),
            dataJson: orNull(response.dataJson),
            principal: orNull(response.principal),
            respondedAtMs: response.respondedAtMs,
          },
  };
}
