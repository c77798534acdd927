// Faults of webhooks: who is admitted, what counts once, and what is shown.

import { type Mutation, mutationsOf } from "./mutation.ts";

const unit = ["src/schedules/webhook-signatures.test.ts"];
const gateway = ["test/gateway/webhooks.test.ts"];

const signatures = mutationsOf("src/schedules/webhook-signatures.ts", unit);
const webhooks = mutationsOf("src/schedules/webhooks.ts", gateway);
const requests = mutationsOf("src/http/resources/webhook-requests.ts", gateway);
const view = mutationsOf("src/http/resources/webhook-view.ts", gateway);
const schedules = mutationsOf("src/http/resources/schedules.ts", gateway);
const conventions = mutationsOf("src/http/core/conventions.ts", gateway);

export const webhookMutations: readonly Mutation[] = [
  signatures("the last of several signatures alone counts", " || isSigned;", ";"),
  signatures("any signature is right", "if (!isSigned) {", "if (false) {"),
  signatures(
    "the time that is signed need not be near",
    "signedAtSeconds !== null && Math.abs",
    "false && Math.abs",
  ),
  signatures(
    "a time in the future is good",
    "Math.abs(nowMs - signedAtSeconds * 1_000)",
    "nowMs - signedAtSeconds * 1_000",
  ),
  signatures("the time is not signed", "head: `${seconds}.`,", 'head: "",'),
  signatures("messages of one body are one", "id: `${id}.`,", 'id: "",'),
  signatures("a message id may have a dot", "[!-\\-/-~]", "[!-~]"),
  signatures("a key as base64 is taken as text", "isEncoded ? ", "false ? "),
  signatures("a key that is no base64 is taken", 'key !== "" && Buffer', "true || Buffer"),
  webhooks(
    "a former path is found",
    "schedule === null ? null : { schedule, scheme, verdict }",
    "{ schedule: schedule!, scheme, verdict }",
  ),
  requests("what is sent again counts again", "key: digest,", "key: undefined,"),
  requests("compressed bodies are taken as they are", "refuseCoding(request);", ""),
  requests("forms are taken for JSON", 'if (!JSON_TYPE.test(request.mediaType ?? "")) throw notJson();', ""),
  requests(
    "a body that is too large is blamed on a setting",
    "error.statusCode === 413 ? tooLarge() : error",
    "error",
  ),
  view("the secret is always shown", 'secret === "shown" ? (', "true ? ("),
  view(
    "what is shown makes another secret",
    "(secret === undefined || secret === MASK)",
    "secret === undefined",
  ),
  view("another path is not made", "path !== null;", "true;"),
  schedules("a new secret is not shown", 'isNewSecret ? "shown" : "masked"', '"masked"'),
  mutationsOf("src/http/resources/schedule-view.ts", gateway)(
    "a webhook may send what only Troupe tells",
    "if (!runEndTypes.includes(rule.type)) return webhook;",
    "return webhook;",
  ),
  mutationsOf("src/http/core/path-of.ts", ["src/http/core/path-of.test.ts"])(
    "paths of webhooks are logged",
    '"$1********"',
    '"$&"',
  ),
  mutationsOf("src/http/core/problem-answers.ts", gateway)(
    "a failure logs the path as it was sent",
    "path: loggedPath(request.url)",
    "path: pathOf(request.url)",
  ),
  conventions("webhooks need the API token", "if (isWebhook(request))", "if (request === null)"),
  conventions(
    "webhooks are not limited",
    "if (isWebhook(request)) return this.#limit(ANONYMOUS, request)",
    "if (isWebhook(request)) return null",
  ),
  conventions(
    "reading below /hooks/ needs no token",
    'method === "POST" && url.startsWith(WEBHOOKS)',
    "url.startsWith(WEBHOOKS)",
  ),
];
