/** A page of rows that may be large: fewer than were asked for when their texts are, but at least one if there is one. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Whether rows were left out for their size; without it, fewer than asked for are the last. */
  readonly isCut: boolean;
}
