// Amounts of what machines have: cores, memory, disk and GPUs. What a command asks for is had by it alone while it runs.

/** Whole numbers. */
export interface Amounts {
  /** Thousandths of a core. */
  readonly cpuMillis: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

const MiB = 1024 ** 2;
const GiB = 1024 ** 3;

/** The kinds, each with the words for an amount of it. */
export const resourceKinds: readonly {
  readonly name: keyof Amounts;
  readonly text: (amount: number) => string;
}[] = [
  { name: "cpuMillis", text: (amount) => counted(amount / 1_000, "core") },
  { name: "memoryBytes", text: (amount) => `${bytesText(amount)} of memory` },
  { name: "diskBytes", text: (amount) => `${bytesText(amount)} of disk` },
  { name: "gpus", text: (amount) => counted(amount, "GPU") },
];

/** Whether there is as much as is asked for. Compared often, for whoever waits: it makes nothing. */
export function isThere(asked: Amounts, there: Amounts): boolean {
  return resourceKinds.every(({ name }) => asked[name] === 0 || asked[name] <= there[name]);
}

/** The kinds that are asked for and of which there is less. */
export function lacking(asked: Amounts, there: Amounts): readonly (keyof Amounts)[] {
  return resourceKinds.map(({ name }) => name).filter((name) => asked[name] > 0 && asked[name] > there[name]);
}

/**
 * `2 cores and 512 MiB of memory`.
 *
 * @param names of these kinds
 */
export function amountsText(amounts: Amounts, names: readonly (keyof Amounts)[]): string {
  const texts = resourceKinds
    .filter(({ name }) => names.includes(name))
    .map(({ name, text }) => text(amounts[name]));
  const last = texts.pop() ?? "nothing";
  return texts.length === 0 ? last : `${texts.join(", ")} and ${last}`;
}

/** What is left when so much is taken so many times; less than 0 where there is less. */
export function without(amounts: Amounts, taken: Amounts, times = 1): Amounts {
  return {
    cpuMillis: amounts.cpuMillis - times * taken.cpuMillis,
    memoryBytes: amounts.memoryBytes - times * taken.memoryBytes,
    diskBytes: amounts.diskBytes - times * taken.diskBytes,
    gpus: amounts.gpus - times * taken.gpus,
  };
}

/** The kinds that are asked for. */
export function askedKinds(asked: Amounts): readonly (keyof Amounts)[] {
  return resourceKinds.map(({ name }) => name).filter((name) => asked[name] > 0);
}

function counted(amount: number, word: string): string {
  return `${amount} ${amount === 1 ? word : `${word}s`}`;
}

/** Rounded down to a tenth: what is not there must not be shown. */
function bytesText(bytes: number): string {
  const [unit, name] = bytes >= GiB ? [GiB, "GiB"] : [MiB, "MiB"];
  return `${Math.floor((bytes / unit) * 10) / 10} ${name}`;
}

/** By what commands are kept within what is their own, the weakest first. */
export const enforcements = ["none", "cgroup1", "cgroup2"] as const;

export type Enforcement = (typeof enforcements)[number];

/** What holds for both. */
export function weaker(one: Enforcement, other: Enforcement): Enforcement {
  return enforcements.indexOf(one) < enforcements.indexOf(other) ? one : other;
}
