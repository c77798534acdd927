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

interface Entry {
  readonly field: string;
  readonly column: string;
  readonly converted: Converted<string, unknown> | null;
}

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
  const entries = Object.entries<string | Converted<string, unknown>>(fields as never).map(
    ([field, to]): Entry =>
      typeof to === "string"
        ? { field, column: to, converted: null }
        : { field, column: to.column, converted: to },
  );
  const stores = entries.map(({ converted }) => converted?.store);
  const reads = entries.map(({ converted }) => converted?.read);
  const storedOf = ({ field, converted }: Entry, i: number) =>
    converted === null ? `record.${field}` : `stores[${i}](record.${field})`;
  const fieldOf = ({ field, column, converted }: Entry, i: number) =>
    converted === null ? `${field}: row.${column}` : `${field}: reads[${i}](row.${column})`;
  const memberOf = (entry: Entry, i: number) => `${entry.column}: ${storedOf(entry, i)}`;
  return {
    names: entries.map(({ column }) => column as keyof Row & string),
    toValues: compiled(
      "stores",
      `(record, ...before) => { before.push(${entries.map(storedOf)}); return before; }`,
      stores,
    ),
    toRow: compiled("stores", `(record) => ({ ${entries.map(memberOf)} })`, stores),
    toRecord: compiled("reads", `(row) => ({ ${entries.map(fieldOf)} })`, reads),
  };
}

/**
 * A function made of its source, which names every column: a loop over the columns would look each one up by its name, and
 * that takes longer than the database itself.
 */
function compiled<Made>(parameter: string, source: string, converters: readonly unknown[]): Made {
  return new Function(parameter, `return ${source}`)(converters) as Made;
}
