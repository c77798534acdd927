// Files of models, whole, damaged and hostile.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { fc } from "../../test/support/fast-check.ts";
import {
  flag,
  type GgufValue,
  ggufFile,
  list,
  safetensorsFile,
  text,
  tinyLlama,
  tinyTensors,
  u32,
  u32Bytes,
  u64Bytes,
} from "../../test/support/model-files.ts";
import { inspectModel } from "./inspect-model.ts";
import { contextThatFits, memoryNeed } from "./memory.ts";

const GIB = 1024 ** 3;
const ENOUGH = { totalBytes: 16 * GIB, freeBytes: 8 * GIB };
const folder = mkdtempSync(join(tmpdir(), "troupe-models-"));
after(() => rmSync(folder, { recursive: true }));
const file = join(folder, "model");

function inspect(content: Buffer, context: number | null = null, memory = ENOUGH) {
  writeFileSync(file, content);
  return inspectModel(file, context, memory);
}
const refused = (content: Buffer, message: RegExp) =>
  assert.rejects(inspect(content), { name: "ModelInvalid", message });

describe("a GGUF file", () => {
  test("is described by its header", async () => {
    const content = ggufFile(tinyLlama, tinyTensors);
    const { bytes, details, need, fit } = await inspect(content);
    assert.equal(bytes, content.length);
    assert.deepEqual(details, {
      format: "gguf",
      formatVersion: 3,
      name: "tiny",
      architecture: "llama",
      license: "apache-2.0",
      parameters: 64 * 259 + 64 * 128,
      quantisation: "F32",
      context: 256,
      tokenizer: "llama",
      vocabulary: 259,
      hasChatTemplate: true,
      weightBytes: 64 * 259 * 4 + (64 * 128 * 34) / 32,
      // Two layers, of two heads each that keep 16 numbers of a key and 16 of a value.
      shape: { embedding: 64, feedForward: 128, keptPerToken: 2 * 2 * 32 },
      warnings: [],
    });
    assert.deepEqual([need.context, need.cacheBytes], [256, 256 * 128 * 2]);
    assert.equal(fit, "fits");
  });

  test("of a version 2 is read as well, and of other versions refused", async () => {
    assert.equal((await inspect(ggufFile(tinyLlama, tinyTensors, 2))).details.formatVersion, 2);
    await refused(ggufFile(tinyLlama, [], 1), /version 1 of GGUF.*convert/);
    await refused(ggufFile(tinyLlama, [], 4), /version 4 of GGUF/);
    await refused(ggufFile(tinyLlama, [], 0x03000000), /big-endian/);
  });

  test("says what is needed when each layer has other heads, and nothing is kept by a model that only embeds", async () => {
    const layers = {
      "llama.attention.head_count_kv": list(4, [1, 3].map(u32Bytes)),
      "llama.attention.key_length": u32(10),
    };
    assert.equal((await inspect(ggufFile({ ...tinyLlama, ...layers }))).details.shape?.keptPerToken, 4 * 26);
    const embeds = { ...tinyLlama, "llama.attention.causal": flag(false) };
    assert.equal((await inspect(ggufFile(embeds))).details.shape?.keptPerToken, 0);
  });

  test("that is a part, or has tensors of a new type, is described with a warning", async () => {
    const parts = { ...tinyLlama, "split.no": u32(1), "split.count": u32(3) };
    const { details } = await inspect(ggufFile(parts, [{ name: "new", shape: [32], type: 99, size: 32 }]));
    assert.match(details.warnings.join("\n"), /part 2 of 3[\s\S]*type 99/);
  });

  test("that was not copied whole is refused, wherever it ends", async () => {
    const content = ggufFile(tinyLlama, tinyTensors);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: content.length - 1 }), async (end) => {
        await refused(content.subarray(0, end), /not copied whole|neither a GGUF file/);
      }),
      { numRuns: 60 },
    );
    // Only the padding behind the last tensor may be missing, and here it has none.
    await refused(content.subarray(0, -1), /blk\.0\.ffn_up\.weight.* ends at byte/);
  });

  test("with other bytes in its header is read or refused, and nothing else", async () => {
    const content = ggufFile(tinyLlama, tinyTensors);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 4, max: 12_000 }), fc.nat(255)), { minLength: 1, maxLength: 8 }),
        async (changes) => {
          const changed = Buffer.from(content);
          for (const [at, byte] of changes) changed[at] = byte;
          await inspect(changed).catch((error: Error) =>
            assert.equal(error.name, "ModelInvalid", String(error.stack)),
          );
        },
      ),
      { numRuns: 200 },
    );
  });

  test("whose counts have no bytes behind them is refused at once", async () => {
    const counts = (tensors: bigint, entries: bigint) =>
      Buffer.concat([Buffer.from("GGUF"), u32Bytes(3), u64Bytes(tensors), u64Bytes(entries)]);
    await refused(counts(2n ** 63n, 0n), /too large to be true/);
    await refused(counts(10n ** 9n, 0n), /1000000000 tensors/);
    await refused(counts(0n, 10n ** 6n), /1000000 entries/);
    await refused(counts(10n ** 6n, 0n), /in the middle of its header/);
    const endless = (type: number): GgufValue => [9, Buffer.concat([u32Bytes(type), u64Bytes(2n ** 52n)])];
    for (const type of [0, 8, 10]) await refused(ggufFile({ x: endless(type) }), /middle of its header/);
    await refused(ggufFile({ x: endless(9) }), /a list of lists/);
    await refused(ggufFile({ x: endless(77) }), /unknown type 77/);
    await refused(ggufFile({ x: [8, u64Bytes(2n ** 52n)] }), /middle of its header/);
    await refused(ggufFile({ ["n".repeat(2_000)]: u32(1) }), /name of 2000 bytes/);
    await refused(ggufFile({}, [{ name: "t", shape: [2 ** 40, 2 ** 40], size: 0 }]), /too large to be true/);
    await refused(
      ggufFile({}, [{ name: "t", shape: [33], type: 8, size: 64 }]),
      /does not fit its type Q8_0/,
    );
    await refused(ggufFile({ "general.alignment": u32(0) }), /alignment is 0/);
  });

  test("may be a sparse one of a terabyte whose header never ends", async () => {
    writeFileSync(file, ggufFile({ x: [9, Buffer.concat([u32Bytes(8), u64Bytes(2n ** 52n)])] }));
    truncateSync(file, 2 ** 40);
    await assert.rejects(inspectModel(file, null, ENOUGH), {
      name: "ModelInvalid",
      message: /larger than 64 MiB/,
    });
  });

  test("keeps no long text, and has each name once", async () => {
    const long = text("x".repeat(100_000));
    const { details } = await inspect(
      ggufFile({ ...tinyLlama, "general.name": long, "tokenizer.chat_template": long }),
    );
    assert.deepEqual([details.name, details.hasChatTemplate], [null, true]);
    const twice = ggufFile({ aa: u32(1), ab: u32(2) });
    twice[twice.indexOf("ab") + 1] = "a".charCodeAt(0);
    await refused(twice, /two entries of the name "aa"/);
  });
});

describe("a safetensors file", () => {
  const header = {
    __metadata__: { title: "small" },
    b: { dtype: "F32", shape: [2], data_offsets: [12, 20] },
    a: { dtype: "BF16", shape: [2, 3], data_offsets: [0, 12] },
  };

  test("is described by its header", async () => {
    const { details, need } = await inspect(safetensorsFile(header, 20));
    assert.deepEqual(
      [
        details.format,
        details.name,
        details.parameters,
        details.quantisation,
        details.weightBytes,
        need.context,
      ],
      ["safetensors", null, 8, "BF16", 20, null],
    );
  });

  test("that is damaged or hostile is refused", async () => {
    await refused(safetensorsFile(header, 19), /20 bytes, and 19 are there/);
    await refused(safetensorsFile(header, 21), /1 bytes that belong to none/);
    await refused(safetensorsFile("{", 0), /no JSON/);
    await refused(safetensorsFile({ a: null }, 0), /lacks its dtype/);
    const of = (one: object) => safetensorsFile({ a: { ...header.a, ...one } }, 12);
    await refused(of({ shape: [2 ** 40, 2 ** 40] }), /its type and shape/);
    await refused(of({ shape: [-2, -3] }), /lacks its dtype/);
    await refused(of({ dtype: "x".repeat(17) }), /lacks its dtype/);
    await refused(safetensorsFile({ ["n".repeat(10_000)]: null }, 0), /^The tensor "n{100}" lacks/);
    await refused(of({ data_offsets: [4, 16] }), /begins at byte 4/);
    await refused(of({ data_offsets: [12, 0] }), /has -12 bytes/);
    const length = Buffer.concat([u64Bytes(2 ** 40), Buffer.from("{")]);
    await refused(length, /middle of its header/);
    writeFileSync(file, length);
    truncateSync(file, 2 ** 41);
    await assert.rejects(inspectModel(file, null, ENOUGH), {
      name: "ModelInvalid",
      message: /larger than 4/,
    });
  });
});

test("what is no file, or no model, is refused without waiting for it", async () => {
  await refused(Buffer.from("hello"), /neither a GGUF file nor a safetensors file/);
  await refused(Buffer.alloc(0), /neither/);
  await assert.rejects(inspectModel(folder, null, ENOUGH), {
    name: "ModelInvalid",
    message: "It is no file.",
  });
  spawnSync("mkfifo", [join(folder, "pipe")]);
  await assert.rejects(inspectModel(join(folder, "pipe"), null, ENOUGH), { message: "It is no file." });
  await assert.rejects(inspectModel(join(folder, "none"), null, ENOUGH), { code: "ENOENT" });
});

test("a verdict is of the memory that there is, and of the context that is asked for", async () => {
  const content = ggufFile({ ...tinyLlama, "llama.context_length": u32(2 ** 20) }, tinyTensors);
  const { details, need } = await inspect(content);
  assert.equal(need.context, 8_192);
  const needed = memoryNeed(details, 2 ** 20).bytes;
  const fit = async (totalBytes: number, freeBytes: number) => {
    const found = await inspect(content, 2 ** 20, { totalBytes, freeBytes });
    return [found.fit, found.smallerContext];
  };
  assert.deepEqual(await fit(needed, needed), ["fits", null]);
  assert.deepEqual(await fit(needed, needed - 1), ["fits_when_free", null]);
  assert.deepEqual(await fit(needed - 1, needed - 1), ["too_large", 2 ** 19]);
  assert.deepEqual(await fit(1, 1), ["too_large", null]);
  assert.equal(contextThatFits(details, memoryNeed(details, 4_096).bytes), 4_096);
  const small = await inspect(ggufFile(tinyLlama, tinyTensors), 10 ** 8);
  assert.deepEqual([small.fit, small.smallerContext], ["too_large", 256]);
  const none = ggufFile({ ...tinyLlama, "llama.context_length": u32(0) }, tinyTensors);
  assert.equal((await inspect(none, null, { totalBytes: 1, freeBytes: 1 })).smallerContext, null);
});
