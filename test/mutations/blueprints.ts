// Faults of how blueprints and manifests are judged: problems, their places, and warnings.

import type { Mutation } from "./mutation.ts";

const describePackage = ["src/blueprints/describe-package.test.ts"];

export const blueprintMutations: readonly Mutation[] = [
  {
    fault: "an unknown field of a declaration is not warned about",
    file: "src/blueprints/unknown-fields.ts",
    search: "if (NOTE.test(name) && !isClosed) continue;",
    replacement: "if (NOTE.test(name) || isClosed) continue;",
    tests: describePackage,
  },
  {
    fault: "an unknown field of the graph is not warned about",
    file: "src/blueprints/describe-package.ts",
    search: "yield* unknownFieldSteps(manifest, manifestSchema, text.manifest);",
    replacement: "",
    tests: describePackage,
  },
  {
    fault: "a problem of the configuration points into the manifest",
    file: "src/blueprints/describe-reading.ts",
    search: 'inFile("/config/default.json#", "the configuration: ", finding)',
    replacement: 'inFile("", "the configuration: ", finding)',
    tests: describePackage,
  },
  {
    fault: "an input rule whose min is more than its max is taken",
    file: "src/blueprints/describe-manifest.ts",
    search: "if (min !== null && max !== null && min > max)",
    replacement: "if (min !== null && max !== null && min === max + 1.5)",
    tests: describePackage,
  },
  {
    fault: "an input_schema that is not a JSON Schema is accepted",
    file: "src/blueprints/describe-manifest.ts",
    search: 'manifest.fields.report(name, "invalid_schema", clause);',
    replacement: "",
    tests: describePackage,
  },
  {
    fault: "a configuration that is wrong hides what is wrong with the manifest",
    file: "src/bundles/definition.ts",
    search: "throw new BundleProblem([...problems.all(), ...wrong.map(inManifest)]);",
    replacement: "throw new BundleProblem(problems.all());",
    tests: ["src/bundles/hostile-folders.test.ts"],
  },
  {
    fault: "a JSON file of a bundle that is no object is taken for an absent one",
    file: "src/bundles/definition.ts",
    search: 'problems.add(name, "wrong_type", `${name} must hold a JSON object`);',
    replacement: "return null;",
    tests: ["src/bundles/hostile-folders.test.ts"],
  },
  {
    fault: "JSON that cannot be read does not say where it is wrong",
    file: "src/bundles/definition.ts",
    search: "return ` (${(error as Error).message})`;",
    replacement: 'return error === null ? "x" : "";',
    tests: ["src/bundles/hostile-folders.test.ts"],
  },
  {
    fault: "`troupe validate` does not look into payloads/",
    file: "src/cli/validate.ts",
    search: "if (isThere(name)) return [];",
    replacement: "if (isThere(name) || name.length > 0) return [];",
    tests: ["test/integration/cli.test.ts"],
  },
  {
    fault: "`troupe validate` does not show warnings of what is valid",
    file: "src/cli/validate.ts",
    search: '...problemTable(warnings, "WARNING"),',
    replacement: "",
    tests: ["test/integration/cli.test.ts"],
  },
  {
    fault: "the addition of a broken blueprint is accepted, and fails later",
    file: "src/blueprints/blueprints.ts",
    search: 'if (found.kind === "broken") throw broken("blueprint_broken", blueprintId, found.problems);',
    replacement: "",
    tests: ["test/integration/gateway-additions.test.ts"],
  },
  {
    fault: "a bundle whose declarations are wrong is uploaded",
    file: "src/http/resources/bundles.ts",
    search: "if (problems.length > 0) throw new BundleProblem(problems);",
    replacement: "",
    tests: ["test/gateway/bundles.test.ts"],
  },
  {
    fault: "a mistake of a whole upload points to no field of the form",
    file: "src/http/core/problem-answers.ts",
    search: '(one.path === "" ? { ...one, path: "/bundle" } : one)',
    replacement: "one",
    tests: ["test/gateway/bundles.test.ts"],
  },
];
