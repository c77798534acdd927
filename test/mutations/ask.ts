// Faults of the tools that answer about a job.

import type { Mutation } from "./mutation.ts";

const tests = ["test/gateway/ask.test.ts"];

export const askMutations: readonly Mutation[] = [
  {
    fault: "a job is asked whose package does not enable it",
    file: "src/ask/tools.ts",
    search: "extensions.includes(COLLABORATION) ? toolNames.slice(0, 3) : [];",
    replacement: "toolNames.slice(0, 3);",
    tests,
  },
  {
    fault: "a secret of the configuration is told where a worker has printed it",
    file: "src/ask/evidence.ts",
    search: ": this.#redactor.text(text);",
    replacement: ": text;",
    tests,
  },
  {
    fault: "a result's members that are named like secrets are told",
    file: "src/ask/evidence.ts",
    search: "withoutPrinted(secrets.mask(JSON.parse(json) as JsonObject))",
    replacement: "withoutPrinted(JSON.parse(json) as JsonObject)",
    tests,
  },
  {
    fault: "what a command has printed is evidence",
    file: "src/ask/evidence.ts",
    search: "!(isOfCommand && /^std(out|err)$/.test(name))",
    replacement: "!(isOfCommand && name === '')",
    tests,
  },
  {
    fault: "what was read of a run is told after it has changed",
    file: "src/ask/asking.ts",
    search: "before?.version === version ? before",
    replacement: "before !== undefined ? before",
    tests,
  },
  {
    fault: "a question is answered with whatever is nearest",
    file: "src/ask/evidence-index.ts",
    search: "const WORDS_SHARE = 0.5;",
    replacement: "const WORDS_SHARE = 0;",
    tests,
  },
];
