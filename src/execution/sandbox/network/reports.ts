// What a sandbox's proxy reports of its connections, so much that a worker cannot flood its run's history: each refused
// destination once, and a limited number of both kinds. The last report has the totals.

import { type Destination, destinationText } from "./hosts.ts";

/** Fields are named as in the payloads of events. */
export type NetworkReport = ConnectionOpened | ConnectionClosed | ConnectionDenied | NetworkTotals;

export interface ConnectionOpened {
  readonly kind: "opened";
  readonly host: string;
  readonly port: number;
  /** The address that was connected to. */
  readonly address: string;
}

export interface ConnectionClosed extends Omit<ConnectionOpened, "kind"> {
  readonly kind: "closed";
  /** From the sandbox to the host. */
  readonly sent_bytes: number;
  readonly received_bytes: number;
  readonly duration_ms: number;
}

export interface ConnectionDenied {
  readonly kind: "denied";
  readonly host: string;
  readonly port: number;
  readonly reason: string;
  /** The line to add to `sandbox.network.allow`. */
  readonly add: string;
}

/** Reported once, when the proxy is closed. */
export interface NetworkTotals {
  readonly kind: "totals";
  readonly connections: number;
  readonly denied: number;
  /** Of both, how many have no report of their own. */
  readonly unreported: number;
  readonly sent_bytes: number;
  readonly received_bytes: number;
}

export const CONNECTION_REPORTS_MAX = 1_000;
export const DENIED_REPORTS_MAX = 100;

export class NetworkReports {
  readonly #report: (report: NetworkReport) => void;
  readonly #denied = new Set<string>();
  #connections = 0;
  #refusals = 0;
  #unreported = 0;
  #sentBytes = 0;
  #receivedBytes = 0;

  constructor(report: (report: NetworkReport) => void) {
    this.#report = report;
  }

  /** @returns to be called once when the connection is closed */
  opened(
    destination: Destination,
    address: string,
  ): (ended: Pick<ConnectionClosed, "sent_bytes" | "received_bytes" | "duration_ms">) => void {
    const isReported = this.#connections++ < CONNECTION_REPORTS_MAX;
    const connection = { host: destination.host, port: destination.port, address };
    if (isReported) this.#report({ kind: "opened", ...connection });
    else this.#unreported++;
    return (ended) => {
      this.#sentBytes += ended.sent_bytes;
      this.#receivedBytes += ended.received_bytes;
      if (isReported) this.#report({ kind: "closed", ...connection, ...ended });
    };
  }

  denied(destination: Destination, reason: string, add: string): void {
    this.#refusals++;
    const text = destinationText(destination);
    if (this.#denied.has(text) || this.#denied.size >= DENIED_REPORTS_MAX) {
      this.#unreported++;
      return;
    }
    this.#denied.add(text);
    this.#report({ kind: "denied", host: destination.host, port: destination.port, reason, add });
  }

  totals(): void {
    this.#report({
      kind: "totals",
      connections: this.#connections,
      denied: this.#refusals,
      unreported: this.#unreported,
      sent_bytes: this.#sentBytes,
      received_bytes: this.#receivedBytes,
    });
  }
}
