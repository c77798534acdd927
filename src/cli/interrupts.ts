// Ctrl-C and SIGTERM: the first one shuts down gracefully, a second one immediately.
//
// - Repeats within 500 ms count as the first: one Ctrl-C reaches a program twice when a launcher between it and
//   the terminal passes the signal on.

const REPEAT_MS = 500;

export type Interrupt = "first" | "repeat" | "second";

/** Tells a first signal, its echoes, and a second one apart; give it the time of each signal in order. */
export function interruptGate(): (nowMs: number) => Interrupt {
  let firstMs: number | null = null;
  return (nowMs) => {
    if (firstMs === null) {
      firstMs = nowMs;
      return "first";
    }
    return nowMs - firstMs < REPEAT_MS ? "repeat" : "second";
  };
}

export interface Interrupts {
  /** Aborts with the first signal; the reason is the signal's name. */
  readonly signal: AbortSignal;
  /** Gives the signals back. */
  release(): void;
}

/**
 * Listens for SIGINT, SIGTERM and SIGHUP.
 *
 * @param onSecond called when a second one comes; must end the process
 */
export function listenForInterrupts(onSecond: () => void): Interrupts {
  const controller = new AbortController();
  const gate = interruptGate();
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const handle = (name: NodeJS.Signals) => {
    const interrupt = gate(performance.now());
    if (interrupt === "first") controller.abort(name);
    else if (interrupt === "second") onSecond();
  };
  for (const name of names) process.on(name, handle);
  return {
    signal: controller.signal,
    release: () => {
      for (const name of names) process.off(name, handle);
    },
  };
}
