// Property tests try the same values in every run, so that a change is judged by what it changed.
// Other values: PROPERTY_SEED=$RANDOM npm test.

import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) });

export { fc };
