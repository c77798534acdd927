// Which instance a caller is given, and why none.

import type { RequiredService } from "../engine/service.ts";
import type { ServiceInstance, ServiceView } from "./instance.ts";

/** A name, tags that it must have all of, and the machine that it must be on; null: any. */
export type Wanted = RequiredService;

export type Resolution =
  | { readonly kind: "resolved"; readonly service: ServiceView }
  /** Nothing of that name, tags and node is registered. */
  | { readonly kind: "unknown"; readonly reason: string }
  | { readonly kind: "not_passing"; readonly reason: string };

/** @param named the instances of the wanted name */
export function resolve(named: readonly ServiceInstance[], wanted: Wanted, nodeName: string): Resolution {
  const what = described(wanted);
  if (wanted.node !== null && wanted.node !== nodeName) {
    return { kind: "unknown", reason: `There is no ${what}: this runtime's node is "${nodeName}".` };
  }
  const fitting = named.filter(({ spec }) => wanted.tags.every((tag) => spec.tags.includes(tag)));
  if (fitting.length === 0) {
    const others = named.length > 0 ? " (others of this name have other tags)" : "";
    return { kind: "unknown", reason: `There is no ${what}${others}. Start a job that offers it.` };
  }
  const newestFirst = fitting.toSorted((a, b) => b.order - a.order);
  const passing = newestFirst.find(({ status }) => status === "passing");
  if (passing !== undefined) return { kind: "resolved", service: passing };
  const reason = `No ${what} is passing: ${newestFirst[0]?.reason}. Wait until its checks pass.`;
  return { kind: "not_passing", reason };
}

function described({ name, tags, node }: Wanted): string {
  const ofTags = tags.length === 0 ? "" : ` with the tags ${tags.join(", ")}`;
  const ofNode = node === null ? "" : ` on the node "${node}"`;
  return `service "${name}"${ofTags}${ofNode}`;
}
