// Doing the same for many things, a few at a time.

/**
 * Does `work` for every item, at most `atOnce` of them at the same time, begun in their order.
 *
 * After a failure nothing new is begun; it is thrown once everything that was begun has ended, so that whoever
 * cleans up afterwards finds nobody still at work.
 */
export async function forEachOf<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values();
  const failures: unknown[] = [];
  const lane = async () => {
    for (const item of left) {
      if (failures.length > 0) return;
      try {
        await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
  if (failures.length > 0) throw failures[0];
}
