// What a power cut leaves of files that were being written: of everything that was not synced yet, some sectors have
// reached the disk and others not, in any order, and a few are neither what they were nor what they should have become.
// Of a sector that is torn only bytes that were being written are lost, which SQLite takes for granted too
// (SQLITE_POWERSAFE_OVERWRITE): the frames of one commit end within the sector in which those of the next begin.

import type { Random } from "./random.ts";

const SECTOR_BYTES = 512;
const EMPTY_SECTOR = Buffer.alloc(SECTOR_BYTES);

/**
 * @param synced the file as the last sync left it
 * @param written the file with everything that was written since
 */
export function tornFile(random: Random, synced: Buffer, written: Buffer): Buffer {
  const arrives = random.pick([0, 0.1, 0.5, 0.9, 1]);
  const tears = random.pick([0, 0, 0.3]);
  // A file grows before what is in it arrives, or the other way round.
  const length = random.chance(0.5) ? written.length : random.between(synced.length, written.length);
  const left = Buffer.alloc(Math.max(length, synced.length));
  for (let from = 0; from < left.length; from += SECTOR_BYTES) {
    const to = Math.min(from + SECTOR_BYTES, left.length);
    const before = sectorOf(synced, from);
    const after = sectorOf(written, from);
    let sector = before;
    if (!before.equals(after)) {
      if (random.chance(tears)) sector = tornSector(random, before, after);
      else if (random.chance(arrives)) sector = after;
    }
    sector.copy(left, from, 0, to - from);
  }
  return left;
}

/** Zeros where the file ends before. */
function sectorOf(file: Buffer, from: number): Buffer {
  const sector = file.subarray(from, from + SECTOR_BYTES);
  return sector.length === SECTOR_BYTES ? sector : Buffer.concat([sector, EMPTY_SECTOR], SECTOR_BYTES);
}

function tornSector(random: Random, before: Buffer, after: Buffer): Buffer {
  const differs = (_: number, at: number) => before[at] !== after[at];
  const from = before.findIndex(differs);
  const to = before.findLastIndex(differs) + 1;
  const torn = Buffer.from(before);
  switch (random.below(3)) {
    case 0:
      return torn.fill(0, from, to);
    case 1:
      after.copy(torn, from, from, random.between(from, to));
      return torn;
    default:
      for (let at = from; at < to; at++) torn[at] = random.below(256);
      return torn;
  }
}
