// Between the two clocks. Waits run on the steady clock; what has to survive a restart is stored as wall time, as it
// reads now.

import type { Clock } from "./ports.ts";

export type Clocks = Pick<Clock, "nowMs" | "steadyMs">;

/** The steady time at which a wait for this wall time is over. */
export function toSteady(clock: Clocks, wallMs: number): number {
  return wallMs - clock.nowMs() + clock.steadyMs();
}

/** The wall time, as the wall clock stands now, of a time on the steady clock. */
export function toWall(clock: Clocks, steadyMs: number): number {
  return steadyMs - clock.steadyMs() + clock.nowMs();
}
