// Checksums of rows: SQLite has none for its pages, so a changed byte in a text would be taken for what was stored.

import { crc32 } from "node:zlib";

/** The values of a row in a fixed order, the checksum left out. */
export type RowValues = readonly (string | number | null)[];

export function rowChecksum(values: RowValues): number {
  return crc32(values.join("\0"));
}

/** @throws when the row is not what was stored; one without a checksum is from before there were any */
export function mustBeWhole(
  table: string,
  row: { readonly checksum: number | null },
  values: RowValues,
): void {
  if (row.checksum !== null && row.checksum !== rowChecksum(values)) {
    throw new Error(`a row of table ${table} has changed since it was written (its checksum is wrong)`);
  }
}
