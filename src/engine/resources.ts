// What machines have: amounts of cores, memory, disk and GPUs, and things that are had by name, such as ports. What a command
// asks for is had by it alone while it runs, but for what it shares by name.

/** Whole numbers. */
export interface Amounts {
  /** Thousandths of a core. */
  readonly cpuMillis: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

export const noAmounts: Amounts = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };

export const claimKinds = ["port", "volume", "device"] as const;

/** A thing of a machine that is had by its name. */
export interface Claim {
  readonly kind: (typeof claimKinds)[number];
  readonly name: string;
  /** Whether others that share it, too, may have it at the same time. */
  readonly isShared: boolean;
}

/** What a command asks for. */
export interface Demand extends Amounts {
  /** Absent: nothing. */
  readonly named?: NamedDemand;
}

export const portClaim = (port: number): Claim => ({ kind: "port", name: String(port), isShared: false });

export interface NamedDemand {
  /** At least one, unless there are free ports; no name twice. */
  readonly claims: readonly Claim[];
  /** How many ports that nobody has, whichever they are. */
  readonly freePorts: number;
}

/** A port of a command, by its label; null: one that is free where the command runs. */
export interface PortNeed {
  readonly label: string;
  readonly port: number | null;
}

/** A folder that is kept over runs, and where the command finds it. */
export interface VolumeNeed {
  readonly name: string;
  /** From the command's working folder. */
  readonly path: string;
  /** Others that only read it have it at the same time. */
  readonly isReadOnly: boolean;
  /** No command that writes starts while more is in it; null: no limit. */
  readonly bytesMax: number | null;
}

export const volumeClaim = ({ name, isReadOnly }: VolumeNeed): Claim => ({
  kind: "volume",
  name,
  isShared: isReadOnly,
});

export const deviceClaims = ({ named }: Demand): readonly Claim[] =>
  named === undefined ? [] : named.claims.filter(({ kind }) => kind === "device");

/** The ports of a command by their labels. @param chosen for those that have no number, in their order */
export function portsByLabel(
  needs: readonly PortNeed[],
  chosen: readonly number[] = [],
): ReadonlyMap<string, number> {
  const left = chosen.values();
  const pairs = needs.map(({ label, port }) => [label, port ?? left.next().value] as const);
  return new Map(pairs.flatMap(([label, port]) => (port === undefined ? [] : [[label, port]])));
}

/** The variable that tells a command the number of a port, without its prefix: shells know no "-" in names. */
export const portVariable = (label: string): string => `PORT_${label.toUpperCase().replaceAll("-", "_")}`;

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

/** Whether there is as much as is asked for. Asked often, of all that wait: it allocates nothing. */
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
  return listText(
    resourceKinds.filter(({ name }) => names.includes(name)).map(({ name, text }) => text(amounts[name])),
  );
}

/** `a, b and c`. */
export function listText(texts: readonly string[]): string {
  const last = texts.at(-1) ?? "nothing";
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(", ")} and ${last}`;
}

export const claimText = ({ kind, name }: Claim): string => `${kind} ${name}`;

/** All that is asked for. */
export function demandText(demand: Demand): string {
  const { claims = [], freePorts = 0 } = demand.named ?? {};
  const texts = askedKinds(demand).map((kind) => amountsText(demand, [kind]));
  return listText([...texts, ...claims.map(claimText), ...(freePorts > 0 ? ["free ports"] : [])]);
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
export const enforcements = ["none", "prlimit", "cgroup1", "cgroup2"] as const;

export type Enforcement = (typeof enforcements)[number];

/** What holds for both. */
export function weaker(one: Enforcement, other: Enforcement): Enforcement {
  return enforcements.indexOf(one) < enforcements.indexOf(other) ? one : other;
}
