/** A client of a sandbox's proxy: waited for, not for long, while it has not said what it wants, and between requests. */
export interface Client {
  /** It has said what it wants. */
  begun(): void;
  /** It was given it, or was refused. */
  ended(): void;
}
