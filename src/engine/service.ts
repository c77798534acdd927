// Services that a graph declares: long-lived processes which others find by name (spec "packaging" 11, CONTRACTS §6).

import type { JsonObject } from "./json.ts";
import { hash64 } from "./trace.ts";

export interface ServiceSpec {
  /** Stable: others look it up by this name. */
  readonly name: string;
  /** Tells instances of one name apart inside a job; null: the name does. */
  readonly id: string | null;
  /** Where it is reached: null when the manifest names only the label of a port that has no number. */
  readonly port: number | null;
  readonly portLabel: string | null;
  /** The host that checks and callers use; null: 127.0.0.1. */
  readonly address: string | null;
  /** What a browser is given; null: none. */
  readonly publicUrl: string | null;
  readonly tags: readonly string[];
  readonly meta: JsonObject;
  readonly checks: readonly ServiceCheck[];
}

interface CheckTiming {
  readonly name: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Failures in a row after which a passing service is critical. */
  readonly failuresBeforeCritical: number;
  /** Null: the service's own. */
  readonly address: string | null;
  readonly port: number | null;
}

export type ServiceCheck = CheckTiming &
  (
    | {
        readonly kind: "http";
        readonly method: string;
        readonly path: string;
        /** Null: any of 200 to 299. */
        readonly expectedStatus: number | null;
        readonly contains: string | null;
      }
    | { readonly kind: "tcp" }
    /** grpc.health.v1; the empty name asks for the server as a whole. */
    | { readonly kind: "grpc"; readonly service: string }
    /** A program (no shell) whose exit code 0 means well. */
    | { readonly kind: "script"; readonly command: readonly string[] }
  );

/**
 * Names a service of a run: the same for every attempt of its agent, and after a restart.
 *
 * @param agentId null for a service of the job as a whole
 */
export function serviceId(runId: string, agentId: string | null, { name, id }: ServiceSpec): string {
  return `svc_${hash64(JSON.stringify([runId, agentId, name, id]))}`;
}

/** A service that must be passing before a run starts. */
export interface RequiredService {
  readonly name: string;
  readonly tags: readonly string[];
  readonly node: string | null;
}
