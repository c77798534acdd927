// A check by TCP: the port takes a connection, which is closed at once.

import { connect } from "node:net";
import type { CheckResult } from "../check-state.ts";
import { authority, type Target } from "./target.ts";

/** @throws when there is no connection */
export function checkTcp(target: Target, signal: AbortSignal): Promise<CheckResult> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...target, signal });
    socket.on("error", reject);
    socket.once("connect", () => {
      socket.destroy();
      resolve({ passed: true, output: `${authority(target)} takes connections` });
    });
  });
}
