// Which hosts a sandbox may reach: the list of its policy, `sandbox.network.allow`.
//
// - A host must be listed with the port: by its name, by a name with a star for its first label, or as an address.
// - The address that a name has must be public, or be listed with the port as well.
// - Nothing is resolved here, and what is not listed is never resolved anywhere.

import { whyNotPublic } from "./addresses.ts";
import { type Destination, destinationText, isAddress, parseDestination } from "./hosts.ts";

/** Why a host or an address is refused. */
export interface Refusal {
  /** A phrase, such as "10.0.0.5 is a private address". */
  readonly reason: string;
  /** The line that a policy must have to allow it. */
  readonly add: string;
}

export class AllowList {
  readonly #listed: ReadonlySet<string>;

  /** @param entries that `allowListProblems` finds nothing wrong with */
  constructor(entries: readonly string[]) {
    this.#listed = new Set(entries.map(canonicalEntry).filter((entry) => entry !== null));
  }

  /** Judges what a client asks for, before anything is resolved; null: allowed. */
  refusalOfHost(destination: Destination): Refusal | null {
    const text = destinationText(destination);
    if (this.#listed.has(text)) return null;
    const { host, port } = destination;
    const dot = host.indexOf(".");
    if (!isAddress(host) && dot > 0 && this.#listed.has(`*${host.slice(dot)}:${port}`)) return null;
    return { reason: "it is not in the sandbox's policy", add: text };
  }

  /** Judges an address of a host that is allowed; null: allowed. */
  refusalOfAddress(address: string, port: number): Refusal | null {
    const what = whyNotPublic(address);
    const text = destinationText({ host: address, port });
    if (what === null || this.#listed.has(text)) return null;
    return { reason: `${address} is ${what}`, add: text };
  }

  /** The listed hosts, without those that have a star. */
  destinations(): readonly Destination[] {
    return [...this.#listed].flatMap((text) => parseDestination(text) ?? []);
  }
}

/** What is wrong with a policy's list, as sentences with the entries' numbers; empty: nothing. */
export function allowListProblems(
  entries: readonly unknown[],
): readonly { readonly index: number; readonly message: string }[] {
  return entries.flatMap((entry, index) => {
    if (typeof entry === "string" && canonicalEntry(entry) !== null) return [];
    const message =
      'Write a host and a port, such as "api.example.com:443", "*.example.com:443", "10.0.0.5:8080" or "[fd00::1]:443".';
    return [{ index, message }];
  });
}

/** An entry in the form in which destinations are looked up. */
function canonicalEntry(entry: string): string | null {
  const hasStar = entry.startsWith("*.");
  const destination = parseDestination(hasStar ? entry.slice(2) : entry);
  if (destination === null) return null;
  const text = destinationText(destination);
  if (!hasStar) return text;
  // A star for all of a top-level domain (`*.com`) would allow nearly everything.
  const mayHaveStar = !isAddress(destination.host) && destination.host.includes(".");
  return mayHaveStar ? `*.${text}` : null;
}
