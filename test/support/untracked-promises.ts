// Loaded before the test files by test/run.ts. Node's test runner follows every promise from where it is made until it is
// collected, to know whose test an error is that nobody catches; where promises are made by the million, this takes more of
// the processor than what is tested. Here it follows everything else. Such an error still fails its file, and is shown with its
// stack; run by itself, the file says which test it was.

import hooks from "node:async_hooks";

const { createHook } = hooks;
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });
for (const event of ["uncaughtException", "unhandledRejection"])
  process.on(event, (error) => console.error(error));
