// Every mutation, by the part of the program that it breaks.

import { engineMutations } from "./engine.ts";
import { executionMutations } from "./execution.ts";
import type { Mutation } from "./mutation.ts";
import { storeMutations } from "./store.ts";

export const mutations: readonly Mutation[] = [...engineMutations, ...executionMutations, ...storeMutations];
