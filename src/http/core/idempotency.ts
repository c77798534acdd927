// Idempotency-Key (CONTRACTS §2): a repeated request has one effect.
//
// - The answer is stored in the transaction of the effect: a crash keeps both or neither.
// - Requests with one key run one after the other; later ones find the first one's answer, or try themselves.
// - Of two programs that share the records and are sent one key at the same moment, the second to write its answer finds
//   the first one's: its own effect is undone, and it gives that answer. So does one that fails because of the first.
// - Only success is kept: any other answer means that nothing happened.
// - A record is good for 24 hours.

import { createHash } from "node:crypto";
import { isObject, type JsonValue } from "../../engine/json.ts";
import type { GatewayRecords, GatewayWrites, IdempotencyRecord } from "../../launch/records.ts";
import { KeyedMutex } from "../../lib/async.ts";
import { isUnavailable } from "../../operations/work-queue.ts";
import { Problem } from "./problem.ts";

export const IDEMPOTENCY_MS = 24 * 60 * 60 * 1_000;
const KEY_PATTERN = /^[\x21-\x7e]{1,255}$/;

/** A success, as it is sent and kept. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
}

/** An answer, and whether it is the stored one of an earlier request with the same key. */
export interface GivenAnswer {
  readonly answer: Answer;
  readonly isReplay: boolean;
}

/** The effect, inside the transaction that keeps its answer. */
export type Effect = (writes: GatewayWrites) => Promise<Answer>;

export interface IdempotentRequest {
  readonly principal: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** The header, as it came. */
  readonly key: string | undefined;
  /** What is asked for, besides the path: a JSON value, or the digest of an upload. */
  readonly content: JsonValue;
}

export class IdempotentRequests {
  readonly #records: GatewayRecords;
  readonly #nowMs: () => number;
  readonly #turns = new KeyedMutex();

  constructor(parts: { readonly records: GatewayRecords; readonly nowMs: () => number }) {
    this.#records = parts.records;
    this.#nowMs = parts.nowMs;
  }

  /**
   * Answers a request: with the stored answer of an earlier one with its key, or by doing its work.
   *
   * @param prepare checks the request and returns its effect; not called for a repeated request
   * @throws Problem `idempotency_key_reused`, `invalid_parameter`, and what `prepare` and the effect throw
   */
  async answer(request: IdempotentRequest, prepare: () => Promise<Effect>): Promise<GivenAnswer> {
    const { key } = request;
    if (key === undefined) {
      const effect = await prepare();
      return { answer: await this.#records.write(effect), isReplay: false };
    }
    if (!KEY_PATTERN.test(key)) throw badKey();
    const scope = `${request.principal} ${request.method} ${request.path}`;
    const requestHash = hashOf(request.content);
    return this.#turns.run(`${scope} ${key}`, async () => {
      const before = await this.#given(scope, key);
      if (before !== null) return replay(before, requestHash);
      try {
        const effect = await prepare();
        const answer = await this.#records.write(async (writes) => {
          const given = await effect(writes);
          const record = this.#recordOf(scope, key, requestHash, given);
          if (!(await writes.saveIdempotency(record, this.#expiredMs()))) throw new KeyTaken();
          return given;
        });
        return { answer, isReplay: false };
      } catch (error) {
        if (isUnavailable(error)) throw error;
        const first = await this.#given(scope, key);
        if (first === null) throw error;
        return replay(first, requestHash);
      }
    });
  }

  /** The stored answer, while it is good. */
  async #given(scope: string, key: string): Promise<IdempotencyRecord | null> {
    const record = await this.#records.idempotency(scope, key);
    return record === null || record.createdAtMs <= this.#expiredMs() ? null : record;
  }

  #expiredMs(): number {
    return this.#nowMs() - IDEMPOTENCY_MS;
  }

  #recordOf(scope: string, key: string, requestHash: string, answer: Answer): IdempotencyRecord {
    return {
      scope,
      key,
      requestHash,
      status: answer.status,
      headersJson: JSON.stringify(answer.headers),
      body: answer.body,
      createdAtMs: this.#nowMs(),
    };
  }
}

/** Another program has written its answer under the key meanwhile. */
class KeyTaken extends Error {
  override readonly name = "KeyTaken";
}

function replay(record: IdempotencyRecord, requestHash: string) {
  if (record.requestHash !== requestHash) throw reusedKey();
  const headers = JSON.parse(record.headersJson) as Record<string, string>;
  return { answer: { status: record.status, headers, body: record.body }, isReplay: true };
}

function hashOf(content: JsonValue): string {
  return createHash("sha256").update(canonicalJson(content)).digest("base64url");
}

/** JSON text that is the same for equal values, whatever the order of their keys. */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as JsonValue)}`);
  return `{${members.join(",")}}`;
}

function badKey(): Problem {
  const message = "must be 1 to 255 visible ASCII characters";
  return new Problem("invalid_parameter", `The Idempotency-Key ${message}.`, {
    errors: [{ path: "idempotency-key", code: "invalid_value", message }],
  });
}

function reusedKey(): Problem {
  return new Problem(
    "idempotency_key_reused",
    "This Idempotency-Key was used in the last 24 hours for another request. Send a fresh key for a new request, or the same body to get the first answer again.",
  );
}
