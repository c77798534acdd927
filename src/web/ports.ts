// The ports of dashboards: which of the range in the settings a new run may be given. Who gets one is decided by the
// transaction that makes the run (PortWrites); this only says what to ask for.
//
// - What is on offer is ordered: lower ports first, and last those whose former run has just ended, because its
//   dashboard may still be on its way out; the next one waits for it.
// - A port that a run on another node has is offered behind those that no run has: the node that takes a run over has to
//   have the run's port free.
// - Mode probe passes over ports on which something else listens. Mode prepublished does not look: a container
//   runtime listens on every port that it publishes, and passes on what comes.
// - A look at the ports is bounded: so many at once, so many in all, and so long.

import { createServer } from "node:net";
import type { Clock } from "../engine/ports.ts";
import { forEachConcurrent } from "../lib/async.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { EndedPort, PortRecords } from "./records.ts";

/** Under this label a run has the port of its dashboard. */
export const WEB_UI_PORT = "web_ui";

/** On offer at once; many more than launches that compete at one moment. */
const CANDIDATES_MAX = 256;
const PROBES_AT_ONCE = 64;
const PROBING_MS_MAX = 1_000;
/** How long a dashboard may take to end behind its run; it is killed after 5 s. */
const LEAVING_MS = 10_000;

export interface WebUiPortsParts {
  readonly records: PortRecords;
  /** The first and the last port of the range. */
  readonly start: number;
  readonly end: number;
  readonly mode: "probe" | "prepublished";
  /** The address that dashboards bind. */
  readonly host: string;
  readonly clock: Clock;
}

export class WebUiPorts {
  readonly #parts: WebUiPortsParts;
  /** Looks that are under way, by port: two at once would take each other for a stranger. */
  readonly #probes = new Map<number, Promise<boolean>>();

  constructor(parts: WebUiPortsParts) {
    this.#parts = parts;
  }

  /**
   * The ports that a new run may be given, best first, for PortWrites.reserve.
   *
   * @returns at most 256; an empty list when there is none (see `refusal`). Runs that are accepted meanwhile may
   *   have taken some, or all, by the time of the reservation.
   */
  async candidates(): Promise<readonly number[]> {
    const { records, start, end, mode, clock } = this.#parts;
    const [here, anywhere] = await Promise.all([records.portsInUse(), records.portsInUseAnywhere()]);
    const free = range(start, end).filter((port) => !here.has(port));
    const given = [
      ...free.filter((port) => !anywhere.has(port)),
      ...free.filter((port) => anywhere.has(port)),
    ];
    if (mode === "prepublished") return given.slice(0, CANDIDATES_MAX);
    const leaving = await records.portsFreedSince(clock.nowMs() - LEAVING_MS);
    const open = await this.#open(given);
    const waitedFor = given.filter((port) => leaving.has(port) && !open.includes(port));
    return [...open, ...waitedFor].slice(0, CANDIDATES_MAX);
  }

  /** The ports on which something listens although their runs ended a while ago. */
  async held(): Promise<readonly EndedPort[]> {
    const { records, mode, clock } = this.#parts;
    if (mode === "prepublished") return [];
    const [here, ended] = await Promise.all([
      records.portsInUse(),
      records.portsOfEnded(clock.nowMs() - LEAVING_MS),
    ]);
    const held: EndedPort[] = [];
    const unused = ended.filter(({ port }) => !here.has(port));
    await forEachConcurrent(unused, PROBES_AT_ONCE, async (one) => {
      if (!(await this.#isFree(one.port))) held.push(one);
    });
    return held;
  }

  /** What a caller is told when no port is left. */
  refusal(): DomainError {
    const { start, end, mode } = this.#parts;
    const count = end - start + 1;
    const ports =
      count === 1 ? `The only port for dashboards, ${start}, is` : `All ${count} ports for dashboards are`;
    const whose = mode === "probe" ? "by open runs or by other programs" : "by open runs";
    return new DomainError(
      "no_free_port",
      `${ports} in use ${whose} (${start} to ${end}). Wait until a run with a dashboard has ended, or cancel one; ` +
        "or widen the range with SVC_BLUEPRINT_WEB_UI_PORT_START and SVC_BLUEPRINT_WEB_UI_PORT_END.",
    );
  }

  /** Those of the ports on which nothing listens, in their order, as far as there is time to look. */
  async #open(ports: readonly number[]): Promise<readonly number[]> {
    let cancel = () => {};
    const late = new Promise<"late">((resolve) => {
      cancel = this.#parts.clock.after(PROBING_MS_MAX, () => resolve("late"));
    });
    const free: number[] = [];
    for (let i = 0; i < ports.length && free.length < CANDIDATES_MAX; i += PROBES_AT_ONCE) {
      const group = ports.slice(i, i + PROBES_AT_ONCE);
      const answers = await Promise.race([Promise.all(group.map((port) => this.#isFree(port))), late]);
      if (answers === "late") {
        // Nobody knows better: a port that is taken after all fails the dashboard alone, which is started again.
        free.push(...ports.slice(i));
        break;
      }
      free.push(...group.filter((_, at) => answers[at]));
    }
    cancel();
    return free;
  }

  #isFree(port: number): Promise<boolean> {
    const underWay = this.#probes.get(port);
    if (underWay !== undefined) return underWay;
    const probe = canListen(port, this.#parts.host).finally(() => this.#probes.delete(port));
    this.#probes.set(port, probe);
    return probe;
  }
}

function range(start: number, end: number): readonly number[] {
  return Array.from({ length: end - start + 1 }, (_, i) => start + i);
}

/** Whether a server could listen there now; it is tried, and given up at once. */
function canListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
