// What of a run a person may have to see to, as both APIs show it (CONTRACTS §6 "Evidence"). What is stored as JSON text
// is put into the answer as it is.

import { isoTime } from "../../engine/event.ts";
import type { HumanRequest, HumanResponse } from "../../engine/journal.ts";
import type { JsonObject } from "../../engine/json.ts";
import { withoutSealed } from "../../engine/sealed.ts";
import type { DeadLetter, Retried } from "../../runs/dead-letters.ts";

const text = JSON.stringify;
const time = (ms: number | null) => (ms === null ? "null" : `"${isoTime(ms)}"`);

export function renderHumanRequest(runId: string, request: HumanRequest): string {
  const { requestId, agentId, prompt, allowedDecisions, status, defaultAction } = request;
  return (
    `{"request_id":${text(requestId)},"run_id":${text(runId)},"agent_id":${text(agentId)},` +
    `"prompt":${text(prompt)},"allowed_decisions":${text(allowedDecisions)},"status":"${status}",` +
    `"default_action":${text(defaultAction)},"created_at":${time(request.createdAtMs)},` +
    `"expires_at":${time(request.expiresAtMs)},"response":${renderResponse(request.response)}}`
  );
}

function renderResponse(response: HumanResponse | null): string {
  if (response === null) return "null";
  const { decision, comment, dataJson, principal, respondedAtMs } = response;
  return (
    `{"decision":${text(decision)},"comment":${text(comment)},"data":${dataJson ?? "null"},` +
    `"principal":${text(principal)},"responded_at":${time(respondedAtMs)}}`
  );
}

export function renderDeadLetter(runId: string, letter: DeadLetter): string {
  return (
    `{"dead_letter_id":${text(letter.deadLetterId)},"run_id":${text(runId)},` +
    `"agent_id":${text(letter.agentId)},"message":${shownMessage(letter.messageJson)},"reason":"${letter.reason}",` +
    `"attempts":${letter.attempts},"status":"${letter.status}","created_at":${time(letter.createdAtMs)},` +
    `"retried_at":${time(letter.retriedAtMs)}}`
  );
}

export function renderRetried(runId: string, { retried, notDeliverable }: Retried): string {
  return `{"run_id":${text(runId)},"retried":${retried},"not_deliverable":${notDeliverable}}`;
}

/** The secrets that came with a run's inputs are sealed in it, and masked here. */
function shownMessage(messageJson: string): string {
  if (!messageJson.includes('"$sealed"')) return messageJson;
  return JSON.stringify(withoutSealed(JSON.parse(messageJson) as JsonObject));
}
