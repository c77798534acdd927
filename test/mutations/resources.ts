// Faults of resources: what the machine has, and the limits that operators set.

import type { Mutation } from "./mutation.ts";

const limits = (fault: string, search: string, replacement: string): Mutation => ({
  fault,
  file: "src/resources/limits.ts",
  search,
  replacement,
  tests: ["src/resources/limits.test.ts"],
});
const resources = (fault: string, search: string, replacement: string): Mutation => ({
  fault,
  file: "src/resources/resources.ts",
  search,
  replacement,
  tests: ["src/resources/resources.test.ts"],
});

export const resourceMutations: readonly Mutation[] = [
  limits(
    "an amount that is set leaves the percentage of the same in force",
    "return { ...before, ...takenBack(given),",
    "return { ...before,",
  ),
  limits(
    "an amount beyond what the machine has is taken for what it has",
    "Math.min(Math.floor(share(total, percent)), amount ?? total)",
    "(amount ?? Math.floor(share(total, percent)))",
  ),
  resources("a reading of old limits undoes a change", "stored.revision < this.#applied.revision ||", ""),
  resources(
    "limits are read once, and then no more",
    "if (!this.#isStopped) this.#followEvery(everyMs);",
    "",
  ),
  resources(
    "the same limits are a new revision",
    "isDeepStrictEqual(limits, before.limits) ? before :",
    "limits === before.limits ? before :",
  ),
  {
    fault: "limits that were set are gone after a restart",
    file: "src/app/app.ts",
    search: "await core.resources.start();",
    replacement: "",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "a stale If-Match changes limits",
    file: "src/http/resources/resource.ts",
    search: 'throw stale(tagOf(stored, ""));',
    replacement: "",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "an nvidia-smi that fails names GPUs",
    file: "src/execution/machine-resources.ts",
    search: 'error === null ? stdout : ""',
    replacement: "stdout",
    tests: ["src/execution/machine-resources.test.ts"],
  },
];
