// A page of rows that may be large.

/** Rows of a page: fewer than were asked for when their texts are large, but at least one if there is one. */
export interface Portion<Row> {
  readonly rows: readonly Row[];
  /** Whether rows were left out for their size; without it, fewer than asked for are the last. */
  readonly isCut: boolean;
}
