// All instances sorted by name and id, so that a page, or all of one name, is found without scanning the others. The order
// is the same after a restart, so that paging can continue.

import type { ServiceInstance } from "./instance.ts";

export interface ServicePlace {
  readonly name: string;
  readonly serviceId: string;
}

export class ServiceIndex {
  readonly #sorted: ServiceInstance[] = [];

  get size(): number {
    return this.#sorted.length;
  }

  add(instance: ServiceInstance): void {
    this.#sorted.splice(this.#firstBehind(placeOf(instance)), 0, instance);
  }

  remove(instance: ServiceInstance): void {
    const at = this.#firstBehind(placeOf(instance)) - 1;
    if (this.#sorted[at] === instance) this.#sorted.splice(at, 1);
  }

  named(name: string): readonly ServiceInstance[] {
    const from = this.#firstBehind({ name, serviceId: "" });
    let to = from;
    while (this.#sorted[to]?.spec.name === name) to++;
    return this.#sorted.slice(from, to);
  }

  /**
   * At most `limit` instances after a place that pass a test.
   *
   * @param after null: from the first one
   */
  page(
    limit: number,
    after: ServicePlace | null,
    isWanted: (instance: ServiceInstance) => boolean,
  ): readonly ServiceInstance[] {
    const found: ServiceInstance[] = [];
    for (let at = after === null ? 0 : this.#firstBehind(after); at < this.#sorted.length; at++) {
      if (found.length === limit) break;
      const instance = this.#sorted[at]!;
      if (isWanted(instance)) found.push(instance);
    }
    return found;
  }

  /** The position of the first instance that comes behind a place. */
  #firstBehind(place: ServicePlace): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBehind(placeOf(this.#sorted[middle]!), place)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

export const placeOf = ({ spec, serviceId }: Pick<ServiceInstance, "spec" | "serviceId">): ServicePlace => ({
  name: spec.name,
  serviceId,
});

/** Whether a place comes later in the order. */
export function isBehind(a: ServicePlace, b: ServicePlace): boolean {
  return a.name === b.name ? a.serviceId > b.serviceId : a.name > b.name;
}
