// Lists of any length: as a table, as one JSON array, or as one line per item. Nothing is held but a few hundred items.

import { type Call, exitCodes } from "./command.ts";
import { table } from "./text.ts";

/** Items that share the widths of their columns, and how many are asked for at once. */
const CHUNK_ITEMS = 200;

export interface Listing<Item> {
  /** Makes the walk; `pageSize` items at a time are enough. */
  items(pageSize: number): AsyncIterable<Item>;
  readonly head: readonly string[];
  /** Cleaned cells. */
  row(item: Item): readonly string[];
  /** What is said when there is nothing. */
  readonly nothing: string;
}

/**
 * Prints a list.
 *
 * @param limit how many items at most; null for all
 */
export async function printList<Item>(
  call: Call,
  listing: Listing<Item>,
  limit: number | null,
): Promise<number> {
  // One more than is shown tells whether there are more.
  const pageSize = limit === null ? CHUNK_ITEMS : Math.min(CHUNK_ITEMS, limit + 1);
  const writer = call.flag("json") ? jsonArray<Item>(call) : tableOf(call, listing);
  let count = 0;
  for await (const item of listing.items(pageSize)) {
    if (count === limit) {
      call.terminal.note(`The newest ${limit}; --all shows all.`);
      break;
    }
    writer.add(item);
    count++;
  }
  writer.end();
  if (count === 0 && !call.flag("json")) call.terminal.note(listing.nothing);
  return exitCodes.success;
}

interface Writer<Item> {
  add(item: Item): void;
  end(): void;
}

/** One JSON document, a line for each item. */
function jsonArray<Item>({ terminal }: Call): Writer<Item> {
  let opening = "[";
  return {
    add(item) {
      terminal.print(opening + JSON.stringify(item));
      opening = ",";
    },
    end: () => terminal.print(opening === "[" ? "[]" : "]"),
  };
}

function tableOf<Item>({ terminal }: Call, { head, row }: Listing<Item>): Writer<Item> {
  let rows: (readonly string[])[] = [];
  let hasHead = false;
  const flush = () => {
    if (rows.length === 0) return;
    const lines = table(head, rows);
    for (const line of hasHead ? lines.slice(1) : lines) terminal.print(line);
    hasHead = true;
    rows = [];
  };
  return {
    add(item) {
      rows.push(row(item));
      if (rows.length === CHUNK_ITEMS) flush();
    },
    end: flush,
  };
}

/** Prints items as they come: a line each, or one JSON object per line. */
export async function printStream<Item>(
  { terminal, flag }: Call,
  items: AsyncIterable<Item>,
  line: (item: Item) => string,
): Promise<number> {
  const show = flag("json") ? JSON.stringify : line;
  for await (const item of items) terminal.print(show(item));
  return exitCodes.success;
}
