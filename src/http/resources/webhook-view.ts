// The webhook of a schedule, as the API takes and shows it.

import { MASK } from "../../engine/sealed.ts";
import { DomainError } from "../../lib/domain-error.ts";
import type { Webhook } from "../../schedules/records.ts";
import { secretProblem, webhookSchemes } from "../../schedules/webhook-signatures.ts";
import { makeWebhook, webhookPath } from "../../schedules/webhooks.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { type Schema, type Static, Type } from "../core/type.ts";

const TOLERANCE_SECONDS = 300;

const scheme = Type.OneOf(
  webhookSchemes,
  "How requests are signed. github: X-Hub-Signature-256. stripe: Stripe-Signature. hmac-sha256: as Standard Webhooks has it, webhook-id, webhook-timestamp and webhook-signature.",
);
const tolerance_seconds = Type.Integer(
  `How far the time that a request was signed at may be from now; GitHub signs none. Default: ${TOLERANCE_SECONDS}.`,
  { minimum: 1, maximum: 86_400 },
);

const Input = Type.Input(
  {
    scheme,
    secret: Type.Nullable(
      Type.String("What requests are signed with. Without it, or with null, one is made.", {
        minLength: 1,
        maxLength: 500,
      }),
    ),
    tolerance_seconds,
    path: Type.Nullable(Type.String("As it is shown; null makes another one.", { maxLength: 200 })),
  },
  {
    description:
      "Of a schedule of kind event: POST to its path, signed, is an event of the schedule's type. null removes it.",
    examples: [{ scheme: "github" }],
  },
);
/** Not by Type.Nullable, which would tell a mistake inside it three times. */
export const WebhookInput = { ...Input, type: ["object", "null"] } as Schema<Static<typeof Input> | null>;

export const WebhookShown = Type.Object({
  path: Type.String("From the gateway's root.", { examples: ["/hooks/9Jc…"] }),
  secret: Type.String("Shown once, to the caller who has made or changed it; then ********."),
  scheme,
  tolerance_seconds,
});

export const renderWebhook = (
  webhook: Webhook,
  secrets: ConfigurationSecrets,
  secret: "masked" | "shown",
): Static<typeof WebhookShown> => ({
  path: webhookPath(webhook, secrets),
  secret: secret === "shown" ? (secrets.decryptText(webhook.secret) ?? MASK) : MASK,
  scheme: webhook.scheme,
  tolerance_seconds: webhook.toleranceSeconds,
});

/**
 * @param before the webhook that a patch changes; the same comes back when nothing changes
 * @throws DomainError `validation_failed`
 */
export function webhookOf(
  given: Static<typeof WebhookInput>,
  before: Webhook | null,
  secrets: ConfigurationSecrets,
): Webhook | null {
  if (given === null) return null;
  const { scheme = before?.scheme, secret, path } = given;
  if (scheme === undefined) throw wrong("/scheme", "missing", "is missing");
  if (typeof path === "string" && (before === null || path !== webhookPath(before, secrets)))
    throw wrong("/path", "not_allowed", "is made by the server: leave it out, or give null for another one");
  const keepsSecret = before !== null && (secret === undefined || secret === MASK);
  const kept = keepsSecret ? secrets.decryptText(before.secret) : secret;
  if (kept === MASK)
    throw wrong("/secret", "not_allowed", "is a mask, and there is no secret that it stands for");
  const problem = typeof kept === "string" ? secretProblem(scheme, kept) : null;
  if (problem !== null) throw wrong("/secret", "invalid_value", problem);
  const toleranceSeconds = given.tolerance_seconds ?? before?.toleranceSeconds ?? TOLERANCE_SECONDS;
  const keepsPath = before !== null && path !== null;
  const isSame = keepsSecret && keepsPath && scheme === before.scheme;
  if (isSame && toleranceSeconds === before.toleranceSeconds) return before;
  const chosen = keepsSecret ? before.secret : (secret ?? undefined);
  return makeWebhook(
    {
      scheme,
      toleranceSeconds,
      ...(keepsPath && { path: before }),
      ...(chosen !== undefined && { secret: chosen }),
    },
    secrets,
  );
}

function wrong(at: string, code: string, message: string): DomainError {
  return new DomainError(
    "validation_failed",
    `Invalid schedule: webhook${at.replace("/", ".")} ${message}.`,
    [{ path: `/webhook${at}`, code, message }],
  );
}
