// Bundles: packages of a manifest, configuration and payload.

import { multipartStream } from "./multipart.ts";
import { type Pages, pagesOf } from "./pages.ts";
import type { Bundle, BundlesQuery } from "./records.ts";
import type { CallOptions, Content, Extras, KeyedOptions, Transport } from "./transport.ts";

/** A zip: a Blob or File (in Node `await openAsBlob(path)` reads a file as it is sent), its bytes, or a stream of them. */
export type BundleSource =
  | Blob
  | ArrayBuffer
  | Uint8Array<ArrayBuffer>
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>;

export class BundlesResource {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Uploads a zip whose root, or single top folder, holds manifest.json. It runs nothing. The same content gets the
   * same bundle_id.
   *
   * A stream is sent as it comes, without being held in memory; it can be sent only once, so that such an upload is not
   * retried automatically. Browsers send Blobs only.
   *
   * @throws TroupeProblem `validation_failed`, with one entry in `errors` for each thing that is wrong with the bundle
   *
   * @example const bundle = await client.bundles.upload(await openAsBlob("digest.zip"));
   */
  upload(zip: BundleSource, options: KeyedOptions = {}): Promise<Bundle> {
    return this.#transport.value("uploadBundle", {}, { ...options, ...sendingOf(zip) });
  }

  /** Newest first. */
  list(query: BundlesQuery = {}, options: CallOptions = {}): Pages<Bundle> {
    return pagesOf(this.#transport, "listBundles", { query }, options);
  }

  get(bundleId: string, options: CallOptions = {}): Promise<Bundle> {
    return this.#transport.value("getBundle", { path: { bundle_id: bundleId } }, options);
  }

  /** @throws TroupeProblem `bundle_in_use` while a job uses it */
  async delete(bundleId: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json("deleteBundle", { path: { bundle_id: bundleId } }, options);
  }
}

function sendingOf(zip: BundleSource): Pick<Extras, "content" | "repeat"> {
  if (zip instanceof Blob) return { content: () => formOf(zip) };
  if (zip instanceof ArrayBuffer || zip instanceof Uint8Array) {
    const blob = new Blob([zip], { type: "application/zip" });
    return { content: () => formOf(blob) };
  }
  return { content: () => multipartStream(zip), repeat: "never" };
}

/** Node's fetch keeps a whole copy of the body for a redirect, unless it is not to follow any. */
function formOf(zip: Blob): Content {
  const form = new FormData();
  form.set("bundle", zip, "bundle.zip");
  return { body: form, redirect: "error" };
}
