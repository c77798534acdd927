// A check by TCP: the port accepts a connection, which is closed at once. And the target of checks by connection.

import { connect } from "node:net";
import type { CheckResult } from "../instance.ts";

/**
 * The address of the check, of the service, or this machine's own, as the runtime's process reaches it: neither the
 * address that the service binds nor the URL that browsers are given.
 */
export interface Target {
  readonly host: string;
  readonly port: number;
}

/** host:port, as in URLs. */
export function authority({ host, port }: Target): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

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
