// What of a run a person may have to see to: what its workers ask people, and its dead letters (CONTRACTS §6 "Evidence").

import { letterStatuses } from "../../../runs/dead-letters.ts";
import { answerLimits, humanStatuses } from "../../../runs/human-answers.ts";
import { Type } from "../../core/type.ts";
import { answerObject, JsonObjectSchema, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";
import { oneOf, RunId } from "./evidence.ts";

// -------------------------------------------------------------------------------------- human requests

const HumanStatus = oneOf(humanStatuses, {
  description:
    "pending: nobody has answered. timed_out: the time was over, and the default action was taken.",
});

const Decision = Type.String({ description: "What was decided.", examples: ["approve"] });

const HumanResponseSchema = answerObject({
  decision: Decision,
  comment: nullable(Type.String({ description: "In the person's own words." })),
  data: Type.Unknown({ description: "Any JSON; null without any." }),
  principal: nullable(
    Type.String({
      description: "Who answered: anonymous, or token for whoever has one; null after the time.",
    }),
  ),
  responded_at: Time("When it was answered, or its time was over."),
});

export const HumanRequestSchema = answerObject(
  {
    request_id: Type.String({ description: "Unique in the run.", examples: ["ship"] }),
    run_id: RunId,
    agent_id: Type.String({ description: "Whose worker asks.", examples: ["publisher"] }),
    prompt: Type.String({ description: "The question, for people.", examples: ["Ship version 3?"] }),
    allowed_decisions: Type.Array(Type.String(), {
      description: "The decisions that are taken; empty: any.",
      examples: [["approve", "reject"]],
    }),
    status: HumanStatus,
    default_action: nullable(
      Type.String({ description: "The decision when the time is over; null: the word timed_out." }),
    ),
    created_at: Time("When it was asked."),
    expires_at: nullable(Time("When its time is over; null: it waits for ever.")),
    response: nullable(HumanResponseSchema),
  },
  { description: "A question of a worker to people." },
);

export const HumanRequestPageSchema = pageOf(HumanRequestSchema, "requests to people, oldest first");

export const HumanRequestsQuery = strictObject({
  status: Type.Optional(HumanStatus),
  ...pageQuery,
});

export const AnswerHumanBody = strictObject(
  {
    decision: Type.String({
      minLength: 1,
      maxLength: answerLimits.decisionCharsMax,
      description: "One of the request's allowed_decisions, if it has any.",
    }),
    comment: Type.Optional(
      nullable(
        Type.String({ maxLength: answerLimits.commentCharsMax, description: "For the worker and people." }),
      ),
    ),
    data: Type.Optional(
      Type.Unknown({
        description: `Any JSON, for the worker; at most ${answerLimits.dataCharsMax} characters.`,
      }),
    ),
  },
  { examples: [{ decision: "approve", comment: "Looks good." }] },
);

// ---------------------------------------------------------------------------------------- dead letters

const LetterStatus = oneOf(letterStatuses, { description: "Whether it was sent again." });

export const DeadLetterSchema = answerObject({
  dead_letter_id: Type.String({ examples: ["dl_01k9z1v7m3e8q2x4c6t8b0n5dk"] }),
  run_id: RunId,
  agent_id: nullable(Type.String({ description: "Whom the message was for." })),
  message: JsonObjectSchema("The whole envelope: type, from, to, body and the rest.", {
    message_id: "msg_01k9z1v7m3e8q2x4c6t8b0n5dh_7",
    type: "research_result",
    from: "research",
    to: "writer",
    body: { topic: "bees" },
  }),
  reason: oneOf(["ttl_expired", "target_gone", "mailbox_full", "processing_failed"], {
    description: "Why nobody has it.",
  }),
  attempts: Type.Integer({ description: "How often its processing was tried." }),
  status: LetterStatus,
  created_at: Time("When it was given up."),
  retried_at: nullable(Time("When it was sent again; null while it is open.")),
});

export const DeadLetterPageSchema = pageOf(
  DeadLetterSchema,
  "messages that were not processed, newest first",
);

export const DeadLettersQuery = strictObject({
  status: Type.Optional(LetterStatus),
  ...pageQuery,
});

export const JobDeadLettersQuery = strictObject({
  run_id: Type.Optional(Type.String({ description: "One of the job's runs; the latest one without it." })),
  status: Type.Optional(LetterStatus),
  ...pageQuery,
});

export const RetriedSchema = answerObject(
  {
    run_id: RunId,
    retried: Type.Integer({ description: "Letters that were sent again." }),
    not_deliverable: Type.Integer({
      description:
        "Letters that stay open because they would only be given up again: their agent does not exist, has ended, or has no room.",
    }),
  },
  { description: "What came of sending dead letters again." },
);
