// Files of models for tests: GGUF as its description says, with weights that nobody trained.

export type GgufValue = readonly [type: number, value: Buffer];

const bytesOf = (size: number, write: (buffer: Buffer) => void) => {
  const buffer = Buffer.alloc(size);
  write(buffer);
  return buffer;
};
export const u32Bytes = (value: number) => bytesOf(4, (buffer) => buffer.writeUInt32LE(value));
export const u64Bytes = (value: number | bigint) =>
  bytesOf(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
const textBytes = (text: string) => Buffer.concat([u64Bytes(Buffer.byteLength(text)), Buffer.from(text)]);

export const text = (value: string): GgufValue => [8, textBytes(value)];
export const u32 = (value: number): GgufValue => [4, u32Bytes(value)];
export const f32 = (value: number): GgufValue => [6, bytesOf(4, (buffer) => buffer.writeFloatLE(value))];
export const flag = (value: boolean): GgufValue => [7, Buffer.from([Number(value)])];
/** Of values of one type. */
export function list(type: number, values: readonly Buffer[]): GgufValue {
  return [9, Buffer.concat([u32Bytes(type), u64Bytes(values.length), ...values])];
}

export interface GgufTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** ggml's number; F32 unless given. */
  readonly type?: number;
  /** Bytes. */
  readonly size: number;
}

const ALIGNMENT = 32;
const padded = (size: number) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/** A file of the given entries and tensors; the tensors' data are zeros. */
export function ggufFile(
  entries: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[] = [],
  version = 3,
): Buffer {
  let offset = 0;
  const infos = tensors.map(({ name, shape, type = 0, size }) => {
    const info = [
      textBytes(name),
      u32Bytes(shape.length),
      ...shape.map(u64Bytes),
      u32Bytes(type),
      u64Bytes(offset),
    ];
    offset += padded(size);
    return Buffer.concat(info);
  });
  const values = Object.entries(entries).map(([name, [type, value]]) =>
    Buffer.concat([textBytes(name), u32Bytes(type), value]),
  );
  const counts = [u32Bytes(version), u64Bytes(tensors.length), u64Bytes(values.length)];
  const header = Buffer.concat([Buffer.from("GGUF"), ...counts, ...values, ...infos]);
  return Buffer.concat([header, Buffer.alloc(padded(header.length) - header.length + offset)]);
}

const TOKENS = ["<unk>", "<s>", "</s>", ...Array.from({ length: 256 }, (_, i) => `<0x${i}>`)];
const EMBEDDING = 64;
const FEED_FORWARD = 128;
export const tinyLlama: Readonly<Record<string, GgufValue>> = {
  "general.architecture": text("llama"),
  "general.name": text("tiny"),
  "general.license": text("apache-2.0"),
  "general.file_type": u32(0),
  "llama.context_length": u32(256),
  "llama.embedding_length": u32(EMBEDDING),
  "llama.block_count": u32(2),
  "llama.feed_forward_length": u32(FEED_FORWARD),
  "llama.attention.head_count": u32(4),
  "llama.attention.head_count_kv": u32(2),
  "llama.attention.layer_norm_rms_epsilon": f32(1e-5),
  "tokenizer.ggml.model": text("llama"),
  "tokenizer.ggml.tokens": list(8, TOKENS.map(textBytes)),
  "tokenizer.ggml.token_type": list(
    4,
    TOKENS.map(() => u32Bytes(1)),
  ),
  "tokenizer.chat_template": text("{{ messages }}"),
};
export const tinyTensors: readonly GgufTensor[] = [
  { name: "token_embd.weight", shape: [EMBEDDING, TOKENS.length], size: EMBEDDING * TOKENS.length * 4 },
  // Q8_0: 34 bytes for each 32 numbers.
  {
    name: "blk.0.ffn_up.weight",
    shape: [EMBEDDING, FEED_FORWARD],
    type: 8,
    size: (EMBEDDING * FEED_FORWARD * 34) / 32,
  },
];

/** A safetensors file whose tensors' data are zeros. */
export function safetensorsFile(header: unknown, dataBytes: number): Buffer {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  return Buffer.concat([u64Bytes(json.length), json, Buffer.alloc(dataBytes)]);
}
