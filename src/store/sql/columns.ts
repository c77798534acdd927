// Where the fields of records are stored: one list per kind of record, used to read and to write it.

/** A value in a row. */
export type Stored = string | number | null;

/** A column whose value is not the field's own. */
interface Converted<Column, Value> {
  readonly column: Column;
  readonly store: (value: Value) => Stored;
  readonly read: (stored: Stored) => Value;
}

/** A column with 1 for true and 0 for false. */
export function flag<Column>(column: Column): Converted<Column, boolean> {
  return { column, store: (value) => (value ? 1 : 0), read: (stored) => stored === 1 };
}

/** A column with JSON text; null is stored as null. */
export function json<Column, Value>(column: Column): Converted<Column, Value> {
  return {
    column,
    store: (value) => (value === null ? null : JSON.stringify(value)),
    read: (stored) => JSON.parse(stored === null ? "null" : (stored as string)) as Value,
  };
}

/** The columns that can hold every value of a field. */
type Holding<Row, Value> = { [Column in keyof Row]: Value extends Row[Column] ? Column : never }[keyof Row];

type Fields<Row, Rec> = {
  readonly [Field in keyof Rec]: Holding<Row, Rec[Field]> | Converted<keyof Row, Rec[Field]>;
};

export interface Columns<Row, Rec> {
  /** Of the fields, in their order. */
  readonly names: readonly (keyof Row & string)[];
  /** @param row may have other columns, too */
  readonly toRecord: (row: Partial<Row>) => Rec;
  /** @returns the columns of the fields; the caller adds the others */
  readonly toRow: (record: Rec) => Row;
  /** In the order of `names`. @param before values that come first */
  readonly toValues: (record: Rec, ...before: Stored[]) => Stored[];
}

/**
 * @example
 * const letters = columnsOf<Schema["dead_letters"], Letter>({ letterId: "dead_letter_id", message: json("message_json") });
 */
export function columnsOf<Row, Rec>(fields: Fields<Row, Rec>): Columns<Row, Rec> {
  const entries = Object.entries<string | Converted<string, unknown>>(fields as never).map(([field, to]) => {
    const converted = typeof to === "string" ? null : to;
    return { field, column: converted?.column ?? (to as string), converted };
  });
  const toValues = (record: Rec, ...before: Stored[]): Stored[] => {
    const values = before;
    for (const { field, converted } of entries) {
      const value = (record as Record<string, Stored>)[field]!;
      values.push(converted === null ? value : converted.store(value));
    }
    return values;
  };
  return {
    names: entries.map(({ column }) => column as keyof Row & string),
    toValues,
    toRow: (record) => {
      const values = toValues(record);
      return Object.fromEntries(entries.map(({ column }, i) => [column, values[i]])) as Row;
    },
    toRecord: (row) => {
      const record: Record<string, unknown> = {};
      for (const { field, column, converted } of entries) {
        const stored = (row as Record<string, Stored>)[column]!;
        record[field] = converted === null ? stored : converted.read(stored);
      }
      return record as Rec;
    },
  };
}
