// The services of all living nodes, wherever they are asked for.
//
// - Each node answers for its own jobs, and nobody keeps what it says: what a lost node had is gone with it.
// - A node that does not answer is named. A list leaves out what it has, and nothing is said to be missing that it may have.
// - What listens on the loopback of another machine, for browsers too, is found only by those who ask for that node: at its
//   address here, there is nothing or something else.
// - What of a deployment is to be found is decided by one look at the records: nodes that were asked at different moments could
//   leave out the old instance and the new one.

import type { Clock } from "../engine/ports.ts";
import type { RequiredService } from "../engine/service.ts";
import type { Found, ServicePage, ServiceRegistry, Wanted } from "./registry.ts";
import { isBehind, type ServicePlace } from "./service-index.ts";
import type { ServiceView } from "./service-view.ts";

/** Another node that is alive. */
export interface ServiceNode {
  readonly nodeId: string;
  readonly name: string;
  /** Whether it is on this machine, so that its loopback is that of this node. */
  readonly isSameMachine: boolean;
  /** @returns null when it does not answer */
  find(wanted: Wanted): Promise<Found | null>;
  /** @param isChecked whether they are checked first. @returns null when it does not answer */
  list(page: ServicePage, isChecked: boolean): Promise<readonly ServiceView[] | null>;
}

export interface ServicesParts {
  readonly own: Pick<ServiceRegistry, "find" | "list" | "check">;
  readonly nodeName: string;
  readonly nodeId: string;
  /** Runs whose services nobody is to find: they are not ready, or about to end. */
  readonly outOfService: () => Promise<ReadonlySet<string>>;
  readonly clock: Pick<Clock, "steadyMs">;
}

export type Resolution =
  | { readonly kind: "resolved"; readonly service: ServiceView }
  /** Nothing of that name, tags and node is registered where it can be reached. */
  | { readonly kind: "unknown"; readonly reason: string }
  | { readonly kind: "not_passing"; readonly reason: string };

export interface ServiceList {
  readonly services: readonly ServiceView[];
  /** The names of the nodes that did not answer. */
  readonly unreachable: readonly string[];
}

/** A required service that is not passing. */
export interface Unmet {
  readonly service: string;
  /** A whole sentence. */
  readonly reason: string;
}

/** How long what is missing is not looked for again on behalf of those who wait for it. */
const WAITED_FOR_MS = 1_000;
const WAITED_FOR_MAX = 1_000;

/** What a node has found, or null when it did not answer. */
interface Answer {
  readonly node: string;
  readonly found: Found | null;
}

interface Asked {
  readonly others: readonly ServiceNode[];
  readonly leftOut: readonly string[];
}

export class Services {
  readonly #parts: ServicesParts;
  #others: () => Promise<readonly ServiceNode[]> = async () => [];
  readonly #waitedFor = new Map<
    string,
    { readonly atMs: number; readonly unmet: Promise<readonly Unmet[]> }
  >();

  constructor(parts: ServicesParts) {
    this.#parts = parts;
  }

  /** From now on these are asked, too. @param others those that are alive now, without this one */
  askAlso(others: () => Promise<readonly ServiceNode[]>): void {
    this.#others = others;
  }

  /** A page of the services, by name. @param isChecked whether they are checked first. @throws JournalUnavailable */
  async list(page: ServicePage, isChecked = false): Promise<ServiceList> {
    const { own: registry } = this.#parts;
    const others = await this.#others();
    const asked = others.map(async (node) => ({ name: node.name, listed: await node.list(page, isChecked) }));
    const [own, ...answers] = await Promise.all([
      isChecked ? registry.check(page) : registry.list(page),
      ...asked,
    ]);
    const found = [own, ...answers.map(({ listed }) => listed ?? [])].flat();
    const unreachable = answers.filter(({ listed }) => listed === null).map(({ name }) => name);
    return { services: inOrder(found).slice(0, page.limit), unreachable };
  }

  /** The newest passing service of a name that has all of the tags, on the node that is asked for. @throws JournalUnavailable */
  async resolve(wanted: RequiredService): Promise<Resolution> {
    return this.#resolve(wanted, await this.#asked());
  }

  /** What a search is made with: one look at which runs are left out, for all nodes. */
  async #asked(): Promise<Asked> {
    const [others, leftOut] = await Promise.all([this.#others(), this.#parts.outOfService()]);
    return { others, leftOut: [...leftOut] };
  }

  async #resolve(wanted: RequiredService, { others, leftOut }: Asked): Promise<Resolution> {
    const what = described(wanted);
    const { node } = wanted;
    const { nodeName, nodeId } = this.#parts;
    const isOwnAsked = node === null || node === nodeName || node === nodeId;
    const asked = others.filter((one) => node === null || node === one.name || node === one.nodeId);
    if (!isOwnAsked && asked.length === 0) {
      const names = [nodeName, ...others.map(({ name }) => name)].map((name) => `"${name}"`);
      return { kind: "unknown", reason: `There is no ${what}: the nodes are ${names.join(", ")}.` };
    }
    const own = {
      node: nodeName,
      found: this.#parts.own.find({ ...wanted, leftOut, fromElsewhere: false }),
    };
    const answers = await Promise.all(
      asked.map(async (other): Promise<Answer> => {
        const fromElsewhere = node === null && !other.isSameMachine;
        const { name, tags } = wanted;
        return { node: other.name, found: await other.find({ name, tags, leftOut, fromElsewhere }) };
      }),
    );
    return judged(what, isOwnAsked ? [own, ...answers] : answers);
  }

  /** Those of the required services that are not passing. @throws JournalUnavailable */
  async unmet(required: readonly RequiredService[]): Promise<readonly Unmet[]> {
    if (required.length === 0) return [];
    const asked = await this.#asked();
    const found = await Promise.all(
      required.map(async (wanted) => ({ wanted, now: await this.#resolve(wanted, asked) })),
    );
    return found.flatMap(({ wanted, now }) =>
      now.kind === "resolved" ? [] : [{ service: wanted.name, reason: now.reason }],
    );
  }

  /** The same for those who wait, who may be thousands: it may be up to a second old. @throws JournalUnavailable */
  unmetLately(required: readonly RequiredService[]): Promise<readonly Unmet[]> {
    const atMs = this.#parts.clock.steadyMs();
    const key = JSON.stringify(required);
    const known = this.#waitedFor.get(key);
    if (known !== undefined && atMs - known.atMs < WAITED_FOR_MS) return known.unmet;
    if (this.#waitedFor.size >= WAITED_FOR_MAX) this.#waitedFor.clear();
    const unmet = this.unmet(required);
    this.#waitedFor.set(key, { atMs, unmet });
    return unmet;
  }
}

function judged(what: string, answers: readonly Answer[]): Resolution {
  const found = answers.flatMap(({ found: one }) => (one === null ? [] : [one]));
  const passing = found.flatMap((one) => (one.kind === "passing" ? [one.service] : []));
  const newest = passing.toSorted((a, b) => b.registeredAtMs - a.registeredAtMs)[0];
  if (newest !== undefined) return { kind: "resolved", service: newest };
  const failing = found.find((one) => one.kind === "not_passing");
  if (failing !== undefined) {
    return {
      kind: "not_passing",
      reason: `No ${what} is passing: ${failing.reason}. Wait until its checks pass.`,
    };
  }
  const silent = answers.filter((answer) => answer.found === null).map(({ node }) => `"${node}"`);
  if (silent.length > 0) {
    const reason = `No ${what} was found, but these nodes do not answer now: ${silent.join(", ")}. Try again in a moment.`;
    return { kind: "not_passing", reason };
  }
  const far = answers
    .filter((answer) => answer.found?.kind === "out_of_reach")
    .map(({ node }) => `"${node}"`);
  if (far.length > 0) {
    const reason =
      `There is no ${what} that this node reaches: the one on ${far.join(", ")} listens on loopback alone. Declare ` +
      '"address": "0.0.0.0" if it listens on all addresses of its machine, or ask for that node.';
    return { kind: "unknown", reason };
  }
  const hasOthers = found.some((one) => one.kind === "none" && one.hasOthers);
  const others = hasOthers ? " (others of this name have other tags)" : "";
  return { kind: "unknown", reason: `There is no ${what}${others}. Start a job that offers it.` };
}

const placeOfView = ({ name, serviceId }: ServiceView): ServicePlace => ({ name, serviceId });

/** By name and id. What two nodes have, while a job goes from one to the other, is that of the newer one. */
function inOrder(services: readonly ServiceView[]): readonly ServiceView[] {
  const byId = new Map<string, ServiceView>();
  for (const service of services) {
    const key = JSON.stringify(placeOfView(service));
    const known = byId.get(key);
    if (known === undefined || known.registeredAtMs < service.registeredAtMs) byId.set(key, service);
  }
  return [...byId.values()].sort((a, b) => (isBehind(placeOfView(a), placeOfView(b)) ? 1 : -1));
}

function described({ name, tags, node }: RequiredService): string {
  const ofTags = tags.length === 0 ? "" : ` with the tags ${tags.join(", ")}`;
  const ofNode = node === null ? "" : ` on the node "${node}"`;
  return `service "${name}"${ofTags}${ofNode}`;
}
