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
  {
    fault: "what the limits leave is not looked at, but what the machine has",
    file: "src/resources/capacity.ts",
    search: "lacking(asked, amountsOf(resources.effective))",
    replacement: "lacking(asked, amountsOf(resources.totals))",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "two machines that together have it are taken for one",
    file: "src/resources/capacity.ts",
    search: "machines.every((machine) => lacks(machine, asked))",
    replacement: "machines.length === 1 && machines.every((machine) => lacks(machine, asked))",
    tests: ["src/resources/capacity.test.ts"],
  },
  {
    fault: "a manifest that asks for resources is looked at once, and then accepted whatever the limits are",
    file: "src/launch/submissions.ts",
    search: " || hasDemands(graph)",
    replacement: "",
    tests: ["src/launch/submissions.test.ts"],
  },
  {
    fault: "a run is accepted that no machine could hold",
    file: "src/launch/acceptance.ts",
    search: "await this.#parts.capacity.refuseUnsatisfiable(graph);",
    replacement: "",
    tests: ["test/gateway/resource.test.ts"],
  },
  {
    fault: "parts of a core are rounded down",
    file: "src/engine/manifest/resources.ts",
    search: "Math.ceil(",
    replacement: "Math.floor(",
    tests: ["src/engine/manifest.test.ts"],
  },
];
