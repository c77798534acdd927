// Two sockets as one connection: bytes, ends and losses of one pass to the other.

import type { Socket } from "node:net";

export function join(a: Socket, b: Socket): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.pipe(to);
    from.on("error", () => {});
    // At the end of what comes from one side the other side is ended, and may go on sending.
    const lost = () => to.destroy();
    if (from.destroyed) lost();
    from.once("close", (hadError: boolean) => {
      if (hadError || !from.readableEnded) lost();
    });
  }
}
