// What a job is granted of slots for which others wait, too (src/execution/turns.ts).

/** The lowest first. */
export const priorities = ["low", "normal", "high"] as const;

export type Priority = (typeof priorities)[number];

export const WEIGHT_MAX = 100;

export const isPriority = (value: unknown): value is Priority => priorities.includes(value as Priority);

export const isWeight = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= WEIGHT_MAX;

export interface Terms {
  readonly priority: Priority;
  /** Slots that its job is granted in its turn: a whole number from 1 to WEIGHT_MAX. */
  readonly weight: number;
}

export const defaultTerms: Terms = { priority: "normal", weight: 1 };

export interface Share extends Terms {
  /** Whose turn it is: the runs of one job share its turns. */
  readonly job: string;
}

export const plainShare = (job: string): Share => ({ job, ...defaultTerms });
