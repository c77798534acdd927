// Checksums of rows: SQLite has none for its pages, so a changed byte in a text would be taken for what was stored.
// Rows from before there were checksums have null in their place.

import { crc32 } from "node:zlib";
import { briefColumns } from "../sql/brief-jobs.ts";
import { fixedColumns, progressColumns } from "../sql/job-columns.ts";

/** Joining texts of megabytes takes longer than their checksum. */
const JOINED_CHARS_MAX = 64 * 1024;

export type RowValues = readonly (string | number | null)[];
export type Row = Readonly<Record<string, string | number | null>>;

/** A column that holds a checksum, and the columns whose values, in this order, it is of. */
export interface RowChecksum {
  readonly column: string;
  readonly of: readonly string[];
}

/** Of a job's row one part is written with each batch, and the others never again; a claim changes none. */
const JOB_CHECKSUMS: readonly RowChecksum[] = [
  { column: "fixed_checksum", of: fixedColumns.names },
  { column: "progress_checksum", of: progressColumns.names },
  { column: "brief_checksum", of: briefColumns },
];

/** @param columns the table's, in their order */
export function checksumsOf(table: string, columns: readonly string[]): readonly RowChecksum[] {
  if (table === "jobs") return JOB_CHECKSUMS;
  const at = columns.indexOf("checksum");
  // Those behind it were added by a later version, which may use the database beside this one.
  return at < 0 ? [] : [{ column: "checksum", of: columns.slice(0, at) }];
}

export function rowChecksum(values: RowValues): number {
  let chars = 0;
  for (const value of values) if (typeof value === "string") chars += value.length;
  return chars > JOINED_CHARS_MAX ? checksumOfParts(values) : crc32(values.join("\0"));
}

/** The same without a copy of the texts. */
function checksumOfParts(values: RowValues): number {
  return values.reduce<number>(
    (sum, value, i) => crc32(`${value ?? ""}`, i === 0 ? sum : crc32("\0", sum)),
    0,
  );
}

/** Whether a row is what was stored. */
export function isWhole(row: Row, checksums: readonly RowChecksum[]): boolean {
  return checksums.every(
    ({ column, of }) => row[column] === null || row[column] === rowChecksum(of.map((name) => row[name]!)),
  );
}
