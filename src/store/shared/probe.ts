// Whether a shared store can be used: an object is put, read and removed.

import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import type { Finding } from "../../execution/machine.ts";
import type { Content, ObjectStore } from "./object-store.ts";

/** A check never throws. @param id unlike that of every other probe */
export async function probe(store: ObjectStore, id: string): Promise<Finding> {
  const name = "files";
  const text = Buffer.from(id);
  const content: Content = {
    size: text.length,
    sha256: createHash("sha256").update(text).digest("hex"),
    read: async (into, at) => text.copy(into, 0, at),
  };
  const key = `probes/${id}`;
  try {
    await store.put(key, content);
    try {
      const read = await store.read(key, text.length, 0, text.length - 1);
      if (read === null || !(await buffer(read)).equals(text)) {
        return { name, state: "fail", text: `${store.address} does not give back what it takes`, fix: FIX };
      }
    } finally {
      await store.remove(key);
    }
    return { name, state: "ok", text: `${store.address} takes files and gives them back` };
  } catch (error) {
    return { name, state: "fail", text: error instanceof Error ? error.message : String(error), fix: FIX };
  }
}

const FIX = "Check SVC_BLOB_URL, the store's address and rights, and for s3:// the AWS_* credentials.";
