// Lists of any length: as a table, as one JSON array, or as one line per item. Nothing is held but a few hundred items.

import { type Call, exitCodes, UsageError } from "./command.ts";
import type { Style } from "./terminal.ts";
import { cleanText, table } from "./text.ts";

const ITEMS_SHOWN = 20;
/** Items that share the widths of their columns; also the largest page that is requested. */
const CHUNK_ITEMS = 200;

export interface Listing<Item> {
  /** Makes the walk; `pageSize` items at a time are enough. */
  items(pageSize: number): AsyncIterable<Item>;
  /** How many items at most; all when null or absent. */
  readonly limit?: number | null;
  readonly head: readonly string[];
  row(item: Item): readonly unknown[];
  /** Of the item's whole row. */
  style?(item: Item): Style | null;
  /** The element of the JSON array; the item itself when absent. */
  json?(item: Item): unknown;
  /** The notice when there are no items. */
  readonly nothing: string;
  /** The notice after the items. */
  readonly hint?: string;
}

/** How many items a list shows: --limit, or 20; null with --all. */
export function limitOf(call: Call): number | null {
  if (call.flag("all")) return null;
  return countOf(call, "limit", { example: 50 }) ?? ITEMS_SHOWN;
}

/** The number that an option gives, from 1; null without it. */
export function countOf(
  call: Call,
  option: string,
  { max, example }: { readonly max?: number; readonly example: number },
): number | null {
  const text = call.text(option);
  if (text === null) return null;
  const count = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= (max ?? count)) return count;
  const range = max === undefined ? "whole number, 1 or more" : `whole number from 1 to ${max}`;
  throw new UsageError(`--${option} needs a ${range}: --${option} ${example}`);
}

/** @throws UsageError when an option's value is not one of these */
export function oneOf<Value extends string>(
  call: Call,
  option: string,
  values: readonly Value[],
): Value | undefined {
  const text = call.text(option);
  const value = values.find((known) => known === text);
  if (text === null || value !== undefined) return value;
  throw new UsageError(`--${option}: ${JSON.stringify(cleanText(text))} is not one of ${values.join(", ")}.`);
}

/** Prints a list. */
export async function printList<Item>(call: Call, listing: Listing<Item>): Promise<number> {
  const { limit = null } = listing;
  // One more than is shown, to know whether there are more.
  const pageSize = limit === null ? CHUNK_ITEMS : Math.min(CHUNK_ITEMS, limit + 1);
  const writer = call.flag("json") ? jsonArray(call, listing) : tableOf(call, listing);
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
  const notice = count === 0 ? listing.nothing : listing.hint;
  if (notice !== undefined && !call.flag("json")) call.terminal.note(notice);
  return exitCodes.success;
}

interface Writer<Item> {
  add(item: Item): void;
  end(): void;
}

/** One JSON document, a line for each item. */
function jsonArray<Item>({ terminal }: Call, { json = (item) => item }: Listing<Item>): Writer<Item> {
  let opening = "[";
  return {
    add(item) {
      terminal.print(opening + JSON.stringify(json(item)));
      opening = ",";
    },
    end: () => terminal.print(opening === "[" ? "[]" : "]"),
  };
}

function tableOf<Item>({ terminal }: Call, { head, row, style }: Listing<Item>): Writer<Item> {
  let items: Item[] = [];
  let hasHead = false;
  const flush = () => {
    if (items.length === 0) return;
    const [titles, ...lines] = table(head, items.map(row));
    if (!hasHead) terminal.print(titles);
    for (const [i, line] of lines.entries()) {
      const colour = style?.(items[i]!) ?? null;
      terminal.print(colour === null ? line : terminal.paint(colour, line));
    }
    hasHead = true;
    items = [];
  };
  return {
    add(item) {
      items.push(item);
      if (items.length === CHUNK_ITEMS) flush();
    },
    end: flush,
  };
}

/** Prints items as they come: a line each, or one JSON object per line. */
export async function printStream<Item>(
  { terminal, flag }: Call,
  items: AsyncIterable<Item>,
  line: (item: Item) => string,
  json: (item: Item) => unknown = (item) => item,
): Promise<number> {
  const isJson = flag("json");
  for await (const item of items) terminal.print(isJson ? JSON.stringify(json(item)) : line(item));
  return exitCodes.success;
}
