// Nodes that come and go. A node that a cluster expects may join once, with the token that it was added with. A port,
// implemented in src/store.

export interface ExpectedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** join-token.ts; hexadecimal digits */
  readonly verifier: string;
}

/** Those that may still join. All throw JournalUnavailable. */
export interface ExpectedNodes {
  /** @returns null when it is not expected any more, or somebody has guessed at its token */
  find(nodeId: string): Promise<ExpectedNode | null>;
  /** Somebody has asked without its token. */
  failed(nodeId: string): Promise<void>;
  /** Has it join by a program. @returns false when it is not expected, or another program has joined as it */
  use(nodeId: string, verifier: string, joiner: string): Promise<boolean>;
}

/** The part of a transaction that changes which nodes there are. */
export interface NodeWrites {
  /** Whether a node of this name was not removed. */
  isNamed(name: string): Promise<boolean>;
  /**
   * Expects a node for `forMs` from now on, by the database's clock, and no other of the same name any more.
   *
   * @param nodeId of no other node, or the program that joins would take its place
   * @returns until when
   */
  expect(nodeId: string, node: ExpectedNode, forMs: number): Promise<number>;
  /** The node's program is to end; of a lost one, the node has left. */
  end(nodeId: string): Promise<void>;
  /** It has left, and gets no lease any more: a program that still has one ends when it is to be renewed. */
  remove(nodeId: string): Promise<void>;
}
