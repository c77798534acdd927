// Request ids: the client's own if it is well-formed, else a new one.

import type { IncomingMessage } from "node:http";

const SANE = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Makes the source of request ids.
 *
 * @param processId makes the ids unique among processes; letters and digits
 */
export function requestIds(processId: string): (request: Pick<IncomingMessage, "headers">) => string {
  let count = 0;
  return ({ headers }) => {
    const given = headers["x-request-id"];
    if (typeof given === "string" && SANE.test(given)) return given;
    return `req_${processId}_${(++count).toString(36)}`;
  };
}
