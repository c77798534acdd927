// What a job is granted of slots for which others wait, too (src/execution/turns.ts).

/** The lowest first. */
export const priorities = ["low", "normal", "high"] as const;

export type Priority = (typeof priorities)[number];

export const WEIGHT_MAX = 100;

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
