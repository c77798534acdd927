// Multipart bodies around a zip: mostly whole, with every kind of thing wrong.

import type { Random } from "../simulation/random.ts";
import { shaken } from "./values.ts";

export interface Upload {
  readonly contentType: string;
  readonly body: Buffer;
}

const BOUNDARY = "----fuzz";

interface Part {
  readonly head: string;
  readonly content: Buffer;
}

const file = (field: string, fileName: string, content: Buffer): Part => ({
  head: `Content-Disposition: form-data; name="${field}"; filename="${fileName}"\r\nContent-Type: application/zip`,
  content,
});

/** An upload that may be all right. @param zip a bundle */
export function uploadBody(random: Random, zip: Buffer): Upload {
  const body = multipart([file("bundle", "bundle.zip", zip)]);
  if (random.chance(0.2)) return { contentType: form(), body };
  return random.pick(spoilt)(random, zip);
}

const form = (boundary = BOUNDARY) => `multipart/form-data; boundary=${boundary}`;
const of = (...parts: readonly Part[]): Upload => ({ contentType: form(), body: multipart(parts) });
const asField = (content: Buffer, name = "bundle", fileName = "b.zip") => of(file(name, fileName, content));

const spoilt: readonly ((random: Random, zip: Buffer) => Upload)[] = [
  (random, zip) => asField(shaken(zip, random)),
  (random, zip) => asField(zip.subarray(0, random.below(zip.length))),
  (_, zip) => asField(Buffer.concat([zip, zip])),
  (random, zip) => asField(Buffer.concat([shaken(zip, random).subarray(0, 50), zip])),
  () => asField(Buffer.alloc(0)),
  (random) => asField(Buffer.from(`PK\x05\x06${"\0".repeat(random.below(40))}`, "latin1")),
  (_, zip) => asField(zip, "file"),
  (_, zip) => asField(zip, ""),
  (_, zip) => asField(zip, "__proto__"),
  (_, zip) => asField(zip, "bundle", "../../x.zip"),
  (_, zip) => asField(zip, "bundle", "\0é\xff"),
  (_, zip) => asField(zip, "bundle", "x".repeat(5_000)),
  (_, zip) => of(file("bundle", "a.zip", zip), file("bundle", "b.zip", zip)),
  (_, zip) => of(...Array.from({ length: 40 }, (_, i) => text(`f${i}`, "x")), file("bundle", "a.zip", zip)),
  () => of(text("bundle", "no file")),
  () => of(text("bundle", "x".repeat(70_000))),
  () => of(text("x".repeat(3_000), "y")),
  () => of({ head: "", content: Buffer.from("x") }),
  () => of({ head: "Content-Disposition: form-data", content: Buffer.from("x") }),
  () => of({ head: `X: ${"x".repeat(100_000)}`, content: Buffer.from("x") }),
  () => of({ head: 'Content-Disposition: form-data; name="bundle', content: Buffer.from("x") }),
  () => of(),
  (random, zip) => torn(random, asField(zip)),
  (random, zip) => ({ ...asField(zip), body: shaken(asField(zip).body, random) }),
  (_, zip) => ({ ...asField(zip), contentType: "multipart/form-data" }),
  (_, zip) => ({ ...asField(zip), contentType: form("") }),
  (_, zip) => ({ ...asField(zip), contentType: form("other") }),
  (_, zip) => ({ ...asField(zip), contentType: form("x".repeat(300)) }),
  (_, zip) => ({ ...asField(zip), contentType: "multipart/mixed; boundary=----fuzz" }),
  (_, zip) => ({ contentType: "application/zip", body: zip }),
  (_, zip) => ({ contentType: form(), body: zip }),
  () => ({ contentType: form(), body: Buffer.alloc(0) }),
  () => ({ contentType: "application/json", body: Buffer.from('{"bundle":"x"}') }),
  () => asField(Buffer.alloc(270_000, "x")),
];

function text(name: string, value: string): Part {
  return { head: `Content-Disposition: form-data; name="${name}"`, content: Buffer.from(value) };
}

function torn(random: Random, { contentType, body }: Upload): Upload {
  return { contentType, body: body.subarray(0, random.below(body.length)) };
}

function multipart(parts: readonly Part[]): Buffer {
  const pieces = parts.flatMap(({ head, content }) => [
    Buffer.from(`--${BOUNDARY}\r\n${head}\r\n\r\n`, "latin1"),
    content,
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}
