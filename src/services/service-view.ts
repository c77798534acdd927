// What others see of a service, wherever they ask, and where they reach it.
//
// - An address of loopback is that of the service's node alone. One that stands for all addresses of a machine becomes
//   the node's own, as other nodes reach it; the node itself checks it on loopback.

import { isIPv6 } from "node:net";
import type { JsonObject } from "../engine/json.ts";
import type { ServiceCheck } from "../engine/service.ts";
import { isEvery } from "../lib/addresses.ts";

export const serviceStatuses = ["passing", "critical"] as const;
export type ServiceStatus = (typeof serviceStatuses)[number];

export interface ServiceView {
  /** Stable: the next attempt of the agent, and the next start of the runtime, has the same. */
  readonly serviceId: string;
  readonly name: string;
  readonly status: ServiceStatus;
  readonly tags: readonly string[];
  /** As declared. */
  readonly meta: JsonObject;
  /** The host that callers use. */
  readonly address: string;
  readonly port: number | null;
  readonly publicUrl: string | null;
  /** Whether it asks browsers for the run's key. */
  readonly asksForKey: boolean;
  readonly jobId: string;
  readonly runId: string;
  /** The gateway's job; null for a job of the runtime's own API. */
  readonly definitionId: string | null;
  /** Null for a service of the job as a whole. */
  readonly agentId: string | null;
  /** The name of the node that it runs on. */
  readonly node: string;
  readonly checks: readonly CheckView[];
  readonly registeredAtMs: number;
  /** When its status changed last. */
  readonly updatedAtMs: number;
}

export interface CheckView {
  readonly name: string;
  readonly kind: ServiceCheck["kind"];
  readonly status: ServiceStatus;
  /** Failures in a row, up to now. */
  readonly failures: number;
  /** What was found, for people. */
  readonly output: string;
  /** Null before it was made for the first time. */
  readonly checkedAtMs: number | null;
}

const LOOPBACK = "127.0.0.1";
const LOOPBACK_V6 = "::1";

/**
 * Where callers reach what a service declares as its address.
 *
 * @param declared null: loopback
 * @param nodeHost where other nodes reach this machine; null: there are none
 */
export function calledAt(declared: string | null, nodeHost: string | null): string {
  if (declared === null) return LOOPBACK;
  return isEvery(declared) ? (nodeHost ?? checkedAt(declared)) : declared;
}

/** Where the service's own node reaches what it declares as its address. */
export function checkedAt(declared: string | null): string {
  if (declared === null) return LOOPBACK;
  if (!isEvery(declared)) return declared;
  return isIPv6(declared) ? LOOPBACK_V6 : LOOPBACK;
}
