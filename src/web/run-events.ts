// Where a worker reads the live events of its run: the gateway that this program serves, as seen from this machine. The
// port may be any free one, so it is known only once the gateway listens, which is before any job is recovered.

/** What a worker is told (SVC_BLUEPRINT_RUN_EVENTS_URL and _TOKEN). */
export interface RunEventsAccess {
  readonly url: string;
  /** Good for reading this run; null when none is required. */
  readonly token: string | null;
}

export class RunEvents {
  readonly #tokenOf: (runId: string) => string | null;
  #api: string | null = null;

  /** @param tokenOf the run's own token, where the gateway or its dashboards ask for one */
  constructor(tokenOf: (runId: string) => string | null) {
    this.#tokenOf = tokenOf;
  }

  /** @param api the gateway's URL with /api/v1; null when this program serves none */
  servedAt(api: string | null): void {
    this.#api = api === null ? null : reachable(api);
  }

  /** @returns null while no gateway is served */
  of(runId: string): RunEventsAccess | null {
    if (this.#api === null) return null;
    return { url: `${this.#api}/runs/${runId}/events/stream`, token: this.#tokenOf(runId) };
  }
}

/** An address that stands for all of the machine's can be bound, but not everywhere be called. */
export function reachable(api: string): string {
  return api.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}
