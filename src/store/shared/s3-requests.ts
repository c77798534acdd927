// Signed requests to an S3-compatible store, tried again when they may succeed then.
//
// - The hash of every body is signed, so the store refuses one that arrives changed.
// - A request ends: its headers must arrive in time; what follows them is the caller's.
// - Nothing that is thrown holds a credential.

import { AwsClient } from "aws4fetch";
import type { Clock, Randomness } from "../../engine/ports.ts";
import { SharedStoreUnavailable } from "./object-store.ts";

export interface S3Place {
  readonly bucket: string;
  /** In front of every key, with `/` at its end unless it is empty. */
  readonly prefix: string;
  /** Null: Amazon's own. */
  readonly endpoint: string | null;
  readonly region: string;
}

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}

export interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Null: about the bucket. */
  readonly key: string | null;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly bytes: Uint8Array<ArrayBuffer>; readonly sha256: string };
  /** What did not happen, when it fails: "did not take a file". */
  readonly failure: string;
  readonly attemptsMax: number;
}

/** Of tries until a write, for which a command's result waits, fails: with their waits about half a minute. */
export const WRITE_ATTEMPTS = 8;
/** Of a read, for which a person waits. */
export const READ_ATTEMPTS = 4;

const FIRST_WAIT_MS = 200;
const WAIT_MS_MAX = 10_000;
/** A part of 8 MiB takes as long at 1.1 Mbit/s. */
const ANSWER_MS_MAX = 60_000;
const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ERROR_CHARS_MAX = 64 * 1024;

export interface S3RequestsParts {
  readonly place: S3Place;
  readonly credentials: S3Credentials;
  readonly clock: Pick<Clock, "after">;
  readonly fraction: Randomness["fraction"];
}

export class S3Requests {
  readonly address: string;
  readonly #parts: S3RequestsParts;
  readonly #client: AwsClient;
  readonly #bucket: string;

  constructor(parts: S3RequestsParts) {
    this.#parts = parts;
    const { place, credentials } = parts;
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    this.#client = new AwsClient({
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== null && { sessionToken }),
      service: "s3",
      region: place.region,
    });
    this.#bucket = bucketUrl(place);
    this.address = `s3://${place.bucket}/${place.prefix}${place.endpoint === null ? "" : ` at ${place.endpoint}`}`;
  }

  /**
   * @returns the answer, whose body is to be read or cancelled; null when there is no such object
   * @throws SharedStoreUnavailable
   */
  async send(request: S3Request): Promise<Response | null> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#attempt(request);
      if (answer.kind === "answered") return answer.response;
      if (!answer.mayPass || attempt >= request.attemptsMax) throw this.#failure(request, answer);
      await this.wait(attempt);
    }
  }

  /** Resolves when it is time for another try after so many. */
  wait(attempts: number): Promise<void> {
    const longestMs = Math.min(WAIT_MS_MAX, FIRST_WAIT_MS * 2 ** (attempts - 1));
    const ms = longestMs * (0.5 + this.#parts.fraction() / 2);
    return new Promise((resolve) => this.#parts.clock.after(ms, resolve));
  }

  async #attempt(request: S3Request): Promise<Attempt> {
    const late = new AbortController();
    const cancel = this.#parts.clock.after(ANSWER_MS_MAX, () => late.abort());
    try {
      const response = await fetch(await this.#signed(request), { signal: late.signal });
      if (response.ok) return { kind: "answered", response };
      const text = request.method === "HEAD" ? "" : (await response.text()).slice(0, ERROR_CHARS_MAX);
      const code = tagOf(text, "Code") ?? "";
      if (response.status === 404 && code !== "NoSuchBucket") return { kind: "answered", response: null };
      const mayPass =
        response.status >= 500 || [408, 429].includes(response.status) || code === "RequestTimeout";
      return { kind: "failed", mayPass, why: `HTTP ${response.status}${code === "" ? "" : ` ${code}`}` };
    } catch (error) {
      const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
      const why = late.signal.aborted
        ? `no answer within ${ANSWER_MS_MAX / 1_000} s`
        : (cause?.code ?? (error as Error).message);
      return { kind: "failed", mayPass: true, why, cause: error };
    } finally {
      cancel();
    }
  }

  #signed({ method, key, query = {}, headers = {}, body }: S3Request): Promise<Request> {
    const path = key === null ? "" : `/${encodedPath(this.#parts.place.prefix + key)}`;
    const url = new URL(`${this.#bucket}${path}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    // As the signature spells it: URLSearchParams writes a space as +.
    url.search = url.search.replaceAll("+", "%20");
    const signed = { ...headers, "x-amz-content-sha256": body?.sha256 ?? EMPTY_SHA256 };
    return this.#client.sign(url.href, {
      method,
      headers: signed,
      redirect: "manual",
      ...(body !== undefined && { body: body.bytes }),
    });
  }

  #failure({ failure }: S3Request, { why, cause }: FailedAttempt): SharedStoreUnavailable {
    return new SharedStoreUnavailable(this.address, `${failure} (${why})`, { cause });
  }
}

type Attempt = { readonly kind: "answered"; readonly response: Response | null } | FailedAttempt;

interface FailedAttempt {
  readonly kind: "failed";
  /** Whether another try may succeed. */
  readonly mayPass: boolean;
  readonly why: string;
  readonly cause?: unknown;
}

function bucketUrl({ bucket, endpoint, region }: S3Place): string {
  // The certificate of Amazon's hosts covers one label in front of their own.
  const isHostName = /^[a-z0-9-]+$/.test(bucket);
  if (endpoint === null && isHostName) return `https://${bucket}.s3.${region}.amazonaws.com`;
  const host = endpoint ?? `https://s3.${region}.amazonaws.com`;
  return `${host.replace(/\/+$/, "")}/${bucket}`;
}

function encodedPath(key: string): string {
  const encoded = (part: string) =>
    encodeURIComponent(part).replaceAll(
      /[!'()*]/g,
      (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  return key.split("/").map(encoded).join("/");
}

/** The text of the first element of a name in an answer of the store; null when it has none. */
export function tagOf(xml: string, name: string): string | null {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return found === undefined ? null : unescaped(found);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescaped(text: string): string {
  return text.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    return ENTITIES[name] ?? whole;
  });
}
