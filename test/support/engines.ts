// What makes the sandboxes of this run of the tests.

import type { SandboxEngineName } from "../../src/engine/sandbox.ts";

/** `npm run test:long` runs the tests of sandboxes again with each of the others. */
export const ENGINE_VARIABLE = "TROUPE_TEST_ENGINE";
export const testedEngine = (process.env[ENGINE_VARIABLE] ?? "bubblewrap") as SandboxEngineName;
