// The answer of a batch, as it is sent: its items may carry whole records, so it is made in pieces, and no faster than
// the client takes it.

/** Items that one batch may have. */
export const BATCH_ITEMS_MAX = 1_000;

const PIECE_CHARS = 64 * 1024;

/** `{"items":[…]}` in pieces. @param render an item as JSON text */
export async function* batchText<Item>(
  items: readonly Item[],
  render: (item: Item) => Promise<string>,
): AsyncGenerator<string, undefined> {
  let piece = '{"items":[';
  for (const [at, item] of items.entries()) {
    piece += (at === 0 ? "" : ",") + (await render(item));
    if (piece.length < PIECE_CHARS) continue;
    yield piece;
    piece = "";
  }
  yield `${piece}]}`;
}
