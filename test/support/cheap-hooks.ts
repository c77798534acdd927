// Preloaded by test/run.ts into the processes of tests. The runner follows every promise of a test with an async hook, to
// name the test to which an error belongs that nothing has caught; that took a quarter of the processor time of a test's
// process. Here it follows everything but promises. An error that nothing has caught still fails its file, perhaps
// without the name of the test; the file run by itself (`node bin/troupe.mjs --node --test FILE`) names it.

import asyncHooks from "node:async_hooks";

const { createHook } = asyncHooks;
// The runner takes it from this object when a test file imports node:test.
asyncHooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
