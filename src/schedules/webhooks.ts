// Webhooks: a schedule may have a path at which other programs' signed requests become events of its type.
//
// - The path has a random token. It is found by its hash: how long that takes says nothing about the token.
// - Token and secret are stored encrypted. A path that is not there costs as much as one that is.

import { hash, randomBytes } from "node:crypto";
import { MASK, type Sealed } from "../engine/sealed.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import type { Schedule, ScheduleRecords, Webhook } from "./records.ts";
import {
  checkSignature,
  type SignedRequest,
  secretFrom,
  type Verdict,
  type WebhookScheme,
} from "./webhook-signatures.ts";

const TOKEN_BYTES = 32;
const SECRET_BYTES = 32;

/** What is said of a webhook; without a path or a secret it gets new ones. */
export interface WebhookSettings extends Pick<Webhook, "scheme" | "toleranceSeconds"> {
  readonly path?: Pick<Webhook, "tokenHash" | "token">;
  readonly secret?: Sealed | string;
}

type Secrets = Pick<ConfigurationSecrets, "encryptText" | "decryptText">;

export function makeWebhook(
  { scheme, toleranceSeconds, path, secret }: WebhookSettings,
  secrets: Secrets,
): Webhook {
  const { tokenHash, token } = path ?? newPath(secrets);
  const given = secret ?? secretFrom(scheme, randomBytes(SECRET_BYTES));
  const encrypted = typeof given === "string" ? secrets.encryptText(given) : given;
  return { scheme, toleranceSeconds, tokenHash, token, secret: encrypted };
}

function newPath(secrets: Secrets): Pick<Webhook, "tokenHash" | "token"> {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  return { tokenHash: hashOf(token), token: secrets.encryptText(token) };
}

const hashOf = (token: string) => hash("sha256", token, "base64url");

/** The path of a webhook, from the gateway's root. One that was encrypted with a key that is lost is masked. */
export const webhookPath = ({ token }: Webhook, secrets: Secrets): string =>
  `/hooks/${secrets.decryptText(token) ?? MASK}`;

export interface WebhookParts {
  readonly records: Pick<ScheduleRecords, "scheduleOfWebhook">;
  readonly secrets: Secrets;
  readonly nowMs: () => number;
}

/** A request to a webhook that is there. */
export interface Delivery {
  readonly schedule: Schedule;
  readonly scheme: WebhookScheme;
  readonly verdict: Verdict;
}

export class Webhooks {
  readonly #parts: WebhookParts;
  /** Checked in place of one that is not there. */
  readonly #decoy: Webhook;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    this.#decoy = makeWebhook({ scheme: "github", toleranceSeconds: 0 }, parts.secrets);
  }

  /** Judges a request to a path. @returns null when there is no such webhook */
  async receive(token: string, request: SignedRequest): Promise<Delivery | null> {
    const { records, secrets, nowMs } = this.#parts;
    const schedule = await records.scheduleOfWebhook(hashOf(token));
    const webhook = schedule?.webhook ?? this.#decoy;
    const { scheme, toleranceSeconds } = webhook;
    const secret = secrets.decryptText(webhook.secret);
    if (secret === null)
      throw new Error("A webhook's secret was encrypted with another key: give it a new one.");
    const verdict = checkSignature({ scheme, secret, toleranceSeconds }, request, nowMs());
    return schedule === null ? null : { schedule, scheme, verdict };
  }
}
