// Which worlds a simulation runs. A world is made of its seed, but for the timing of real files: a kind of thing that few worlds
// have must not depend on it.

import { sized } from "../support/long.ts";

/**
 * @param usually how many are run in short, the first ones
 * @param rare more for then: worlds that have what few others have
 * @param long how many are run in the long run
 */
export function seedsOf(usually: number, rare: readonly number[], long: number): readonly number[] {
  return sized([...firstSeeds(usually), ...rare], firstSeeds(long));
}

const firstSeeds = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
