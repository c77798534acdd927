// What can be served: the port by which serving learns of models.

export type Servable =
  | {
      readonly kind: "file";
      readonly modelId: string;
      /** Of the file, or of the folder with config.json and the weights; absolute. */
      readonly path: string;
      readonly format: "gguf" | "safetensors";
      /** Tokens that it was made for. */
      readonly context: number | null;
    }
  | {
      readonly kind: "endpoint";
      readonly modelId: string;
      /** What requests are put behind: https://api.example.com/v1. */
      readonly baseUrl: string;
      /** Its name there. */
      readonly model: string;
      /** In plaintext. */
      readonly apiKey: string | null;
    };

export interface Servables {
  /** @returns null when it is not registered, or its content is not on this machine */
  find(modelId: string): Promise<Servable | null>;
}
