/** What the header of a model's file says. Null is what it does not say. */
export interface ModelDetails {
  readonly format: "gguf" | "safetensors";
  readonly formatVersion: number | null;
  readonly name: string | null;
  readonly architecture: string | null;
  readonly license: string | null;
  readonly parameters: number;
  /** Such as Q4_K_M: the file's own name for it, or the type that most of its bytes have. */
  readonly quantisation: string | null;
  /** Tokens that it was made for. */
  readonly context: number | null;
  readonly tokenizer: string | null;
  /** Tokens. */
  readonly vocabulary: number | null;
  readonly hasChatTemplate: boolean;
  readonly weightBytes: number;
  readonly shape: {
    readonly embedding: number;
    readonly feedForward: number;
    /** Numbers that are kept of each token of the context. */
    readonly keptPerToken: number;
  } | null;
  readonly warnings: readonly string[];
}
