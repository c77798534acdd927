// Who does what, where several programs share one database.
//
// - A program takes work on under a name of its own, which it has until its lease is over; then it gets another.
// - Work that is not done yet carries the name of the program that has taken it on. Nobody else does it while that
//   program is alive, and any other may take it over once it is not.

export interface Ownership {
  /** This program's name now; null: it shares its database with nobody, and all work is its own. */
  owner(): string | null;
  /** The names of the programs that are alive, as the database's clock has it. */
  living(): Promise<ReadonlySet<string>>;
}

/** Of a program that has its database to itself. */
export const alone: Ownership = {
  owner: () => null,
  living: async () => new Set(),
};
