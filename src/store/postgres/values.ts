// Values on their way to PostgreSQL and back.

import pg from "pg";

const INT8 = 20;
const NUMERIC = 1700;

/** Numbers as numbers: times, counts and sums stay below 2^53. */
export const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === INT8 || oid === NUMERIC
      ? Number
      : pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig["getTypeParser"],
};

/** PostgreSQL's texts hold no NUL; one in a name or a prompt becomes the replacement character. */
export function storable(value: unknown): unknown {
  return typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value;
}
