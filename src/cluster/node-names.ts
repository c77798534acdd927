// What people call the node that executes a job, or runs an attempt.

import { nodeOf } from "./nodes.ts";

export interface NodeNames {
  /**
   * @param owner of a job; null: this node's
   * @returns null when no node has it: it was handed over, and is not taken over yet
   */
  ofOwner(owner: string | null): string | null;
  ofNode(nodeId: string): string;
  /** Whether it is this node's owner, or was an earlier one. */
  isHere(owner: string | null): boolean;
}

/** Of a program that shares its database with nobody. */
export function ownNodeName(name: string): NodeNames {
  return { ofOwner: () => name, ofNode: () => name, isHere: () => true };
}

/** @param nameOf what is known of other nodes; of one that has left, its id is all there is */
export function nodeNames(
  own: { readonly nodeId: string; readonly name: string },
  nameOf: (nodeId: string) => string | null,
): NodeNames {
  const ofNode = (nodeId: string) => (nodeId === own.nodeId ? own.name : (nameOf(nodeId) ?? nodeId));
  return {
    ofNode,
    ofOwner(owner) {
      if (owner === null) return own.name;
      const nodeId = nodeOf(owner);
      return nodeId === null ? null : ofNode(nodeId);
    },
    isHere: (owner) => owner === null || nodeOf(owner) === own.nodeId,
  };
}
