// @ts-check
// Requests to the gateway's API. A request that needs a sign-in waits for it, and then goes on.

import { keyHeaders, signedIn } from "./session.js";

const API = "/api/v1";

/** An answer that is no success, or none at all. */
export class ApiProblem extends Error {
  /** @param {number} status 0: the gateway was not reached @param {any} problem */
  constructor(status, problem) {
    super(
      typeof problem?.detail === "string" ? problem.detail : `The gateway answered with status ${status}.`,
    );
    this.status = status;
    /** @type {string} */
    this.code = problem?.code ?? "";
    /** @type {{ path: string, code: string, message: string }[]} */
    this.errors = Array.isArray(problem?.errors) ? problem.errors : [];
  }
}

/**
 * @typedef {object} Options
 * @property {unknown} [body] sent as JSON
 * @property {Record<string, string | number | null | undefined> | undefined} [query] what is empty is left out
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal | undefined} [signal]
 */

/** The address of a resource. @param {string} path below /api/v1, or the whole path @param {Options["query"]} [query] */
export function urlOf(path, query = {}) {
  const url = new URL(path.startsWith(`${API}/`) ? path : `${API}${path}`, location.origin);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

/**
 * @param {string} method @param {string} path @param {Options} [options]
 * @returns {Promise<Response>} a success
 * @throws ApiProblem
 */
export async function request(method, path, { body, query, headers, signal } = {}) {
  for (;;) {
    const shown = keyHeaders();
    const answer = await fetch(urlOf(path, query), {
      method,
      cache: "no-store",
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
        ...shown,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    }).catch((error) => {
      if (signal?.aborted) throw error;
      throw new ApiProblem(0, {
        detail: "The gateway cannot be reached. Check that it runs, then try again.",
      });
    });
    if (answer.ok) return answer;
    if (answer.status !== 401) throw new ApiProblem(answer.status, await answer.json().catch(() => null));
    await signedIn(shown);
  }
}

/** @param {string} path @param {Options["query"]} [query] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const get = async (path, query, signal) => (await request("GET", path, { query, signal })).json();

/**
 * Starts or creates something. Each call is an effect of its own; what is sent again after a lost answer has the same key.
 *
 * @param {string} path @param {unknown} [body] @param {string} [key] @returns {Promise<any>}
 */
export async function post(path, body, key = newKey()) {
  const answer = await request("POST", path, { body: body ?? {}, headers: { "idempotency-key": key } });
  return answer.status === 204 ? null : answer.json();
}

/** A fresh key of an effect; browsers make UUIDs on secure addresses only. */
const newKey = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join("-");

/** @param {string} path @param {unknown} body @param {Record<string, string>} [headers] @returns {Promise<any>} */
export const patch = async (path, body, headers = {}) =>
  (await request("PATCH", path, { body, headers })).json();
