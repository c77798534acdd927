// Faults of the runner and of what it does with workers.

import type { Mutation } from "./mutation.ts";

export const executionMutations: readonly Mutation[] = [];
