// Objects in a bucket of an S3-compatible store.
//
// - A large object is uploaded in parts; its name exists once all are there. Whatever fails, the parts are given back.
// - Few parts are in memory at a time, whatever is stored.
// - A download that is cut off goes on where it was.

import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { Semaphore } from "../../lib/async.ts";
import { FileChanged } from "../../lib/copy-file.ts";
import {
  type Content,
  filled,
  ObjectDamaged,
  type ObjectStore,
  SharedStoreUnavailable,
  type StoredObject,
} from "./object-store.ts";
import { READ_ATTEMPTS, type S3Requests, tagOf, WRITE_ATTEMPTS } from "./s3-requests.ts";

const PART_BYTES = 8 * 1024 * 1024;
/** S3 takes 10,000 parts of an object. */
const PARTS_MAX = 10_000;
const PARTS_IN_MEMORY_MAX = 4;
const OBJECTS_PER_PAGE = 200;

const sha256Of = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

export class S3Objects implements ObjectStore {
  readonly address: string;
  readonly #requests: S3Requests;
  readonly #prefix: string;
  readonly #memory = new Semaphore(PARTS_IN_MEMORY_MAX);

  /** @param prefix that of the requests' place */
  constructor(requests: S3Requests, prefix: string) {
    this.#requests = requests;
    this.#prefix = prefix;
    this.address = requests.address;
  }

  async check(): Promise<void> {
    const query = { "list-type": "2", prefix: this.#prefix, "max-keys": "1" };
    const failure = "cannot be listed";
    const answer = await this.#requests.send({ method: "GET", key: null, query, failure, attemptsMax: 2 });
    await answer?.body?.cancel();
  }

  put(key: string, content: Content): Promise<void> {
    return content.size <= PART_BYTES ? this.#putWhole(key, content) : this.#putInParts(key, content);
  }

  #putWhole(key: string, content: Content): Promise<void> {
    return this.#memory.run(async () => {
      // One byte more, to notice a file that grew.
      const bytes = await filled(Buffer.allocUnsafe(content.size + 1), content, 0);
      if (sha256Of(bytes) !== content.sha256) throw changed();
      const body = { bytes, sha256: content.sha256 };
      await this.#write({ method: "PUT", key, body });
    });
  }

  async #putInParts(key: string, content: Content): Promise<void> {
    const created = await this.#write({ method: "POST", key, query: { uploads: "" } });
    const uploadId = tagOf(created, "UploadId");
    if (uploadId === null) throw this.#unavailable("did not begin an upload");
    try {
      const etags = await this.#putParts(key, uploadId, content);
      const parts = etags.map(
        (etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
      );
      const list = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
      const body = { bytes: list, sha256: sha256Of(list) };
      const completed = await this.#write({ method: "POST", key, query: { uploadId }, body });
      // It answers 200 before it knows.
      const code = tagOf(completed, "Code");
      if (code !== null) throw this.#unavailable(`did not complete an upload (${code})`);
    } catch (error) {
      await this.#requests
        .send({ method: "DELETE", key, query: { uploadId }, failure: "", attemptsMax: READ_ATTEMPTS })
        .catch(() => {});
      throw error;
    }
  }

  /** @returns the parts' ETags, in their order */
  async #putParts(key: string, uploadId: string, content: Content): Promise<readonly string[]> {
    const partBytes = Math.max(PART_BYTES, Math.ceil(content.size / PARTS_MAX));
    const digest = createHash("sha256");
    const etags: string[] = [];
    for (let at = 0; at < content.size; at += partBytes) {
      await this.#memory.run(async () => {
        const room = Buffer.allocUnsafe(Math.min(partBytes, content.size - at));
        const bytes = await filled(room, content, at);
        digest.update(bytes);
        const query = { partNumber: String(etags.length + 1), uploadId };
        const body = { bytes, sha256: sha256Of(bytes) };
        const response = await this.#sent({ method: "PUT", key, query, body });
        await response.body?.cancel();
        etags.push(escaped(response.headers.get("etag") ?? ""));
      });
    }
    if (digest.digest("hex") !== content.sha256) throw changed();
    return etags;
  }

  async find(key: string): Promise<StoredObject | null> {
    const failure = "cannot be read";
    const found = await this.#requests.send({ method: "HEAD", key, failure, attemptsMax: READ_ATTEMPTS });
    if (found === null) return null;
    const size = Number(found.headers.get("content-length"));
    return { key, size, putAtMs: timeOf(found.headers.get("last-modified")) };
  }

  async read(key: string, size: number, first: number, last: number): Promise<Readable | null> {
    const opened = await this.#open(key, size, first, last);
    return opened === null ? null : Readable.from(this.#bytes(opened, { key, size, last }, first));
  }

  async #open(key: string, size: number, first: number, last: number): Promise<Response | null> {
    const headers = { range: `bytes=${first}-${last}` };
    const failure = "cannot be read";
    const opened = await this.#requests.send({
      method: "GET",
      key,
      headers,
      failure,
      attemptsMax: READ_ATTEMPTS,
    });
    if (opened === null) return null;
    const total = opened.headers.get("content-range")?.split("/")[1] ?? opened.headers.get("content-length");
    // Some stores answer a range that is the whole object with 200.
    const isAsked = opened.status === 206 || (first === 0 && last === size - 1);
    if (Number(total) === size && isAsked) return opened;
    await opened.body?.cancel();
    throw new ObjectDamaged(this.address, key);
  }

  async *#bytes(
    opened: Response,
    { key, size, last }: { readonly key: string; readonly size: number; readonly last: number },
    first: number,
  ): AsyncGenerator<Uint8Array> {
    let response = opened;
    let at = first;
    for (let failures = 0; ; ) {
      try {
        for await (const chunk of response.body ?? []) {
          at += chunk.length;
          failures = 0;
          yield chunk;
        }
        if (at > last) return;
        throw new Error("the answer ended early");
      } catch (error) {
        if (at > last) return;
        if (++failures >= READ_ATTEMPTS) throw this.#unavailable("stopped in the middle of a file", error);
        await this.#requests.wait(failures);
        const again = await this.#open(key, size, at, last);
        if (again === null) throw new ObjectDamaged(this.address, key);
        response = again;
      }
    }
  }

  async remove(key: string): Promise<void> {
    const failure = "did not remove a file";
    const removed = await this.#requests.send({ method: "DELETE", key, failure, attemptsMax: 1 });
    await removed?.body?.cancel();
  }

  async *pages(prefix: string): AsyncGenerator<readonly StoredObject[]> {
    for (let token: string | null = null; ; ) {
      const query = {
        "list-type": "2",
        prefix: this.#prefix + prefix,
        "max-keys": String(OBJECTS_PER_PAGE),
        ...(token !== null && { "continuation-token": token }),
      };
      const failure = "cannot be listed";
      const answer = await this.#requests.send({
        method: "GET",
        key: null,
        query,
        failure,
        attemptsMax: READ_ATTEMPTS,
      });
      const xml = (await answer?.text()) ?? "";
      const page = [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, entry = ""]) => ({
        key: (tagOf(entry, "Key") ?? "").slice(this.#prefix.length),
        size: Number(tagOf(entry, "Size")),
        putAtMs: timeOf(tagOf(entry, "LastModified")),
      }));
      if (page.length > 0) yield page;
      token = tagOf(xml, "NextContinuationToken");
      if (token === null) return;
    }
  }

  /** @returns the text of the answer */
  async #write(request: Writing): Promise<string> {
    return (await this.#sent(request)).text();
  }

  async #sent(request: Writing): Promise<Response> {
    const failure = "did not take a file";
    const sent = await this.#requests.send({ ...request, failure, attemptsMax: WRITE_ATTEMPTS });
    if (sent === null) throw this.#unavailable(`${failure}: the upload is gone`);
    return sent;
  }

  #unavailable(why: string, cause?: unknown): SharedStoreUnavailable {
    return new SharedStoreUnavailable(this.address, why, { cause });
  }
}

type Writing = Pick<Parameters<S3Requests["send"]>[0], "method" | "key" | "query" | "body">;

/** What cannot be read as a time counts as just put: nothing is removed because of it. */
function timeOf(text: string | null): number {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? Number.POSITIVE_INFINITY : ms;
}

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

function changed(): FileChanged {
  return new FileChanged("The file changed while it was stored.");
}
