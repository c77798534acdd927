// Property tests try the same values in every run, so that a change is judged by what it changed.
// Other values: PROPERTY_SEED=$RANDOM npm test.

import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) });

/** Any code point, surrogates and control characters included. fast-check's own "binary" takes two seconds to set up. */
const anyCharacter = fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code));

export const anyString = (constraints: fc.StringSharedConstraints = {}): fc.Arbitrary<string> =>
  fc.string({ ...constraints, unit: anyCharacter });

export { fc };
