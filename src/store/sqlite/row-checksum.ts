// Checksums of rows: SQLite has none for its pages, so a changed byte in a text would be taken for what was stored.

import { crc32 } from "node:zlib";

/** The values of a row in the order of the table's columns, the checksum left out. */
export type RowValues = readonly (string | number | null)[];

export function rowChecksum(values: RowValues): number {
  return crc32(values.join("\0"));
}

/** Whether a row is what was stored; one without a checksum is from before there were any. */
export function isWhole(row: { readonly checksum: number | null }, values: RowValues): boolean {
  return row.checksum === null || row.checksum === rowChecksum(values);
}

/** @throws when the row is not what was stored */
export function mustBeWhole(
  table: string,
  row: { readonly checksum: number | null },
  values: RowValues,
): void {
  if (!isWhole(row, values)) {
    throw new Error(`a row of table ${table} has changed since it was written (its checksum is wrong)`);
  }
}
