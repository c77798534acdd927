// What both APIs tell of a removal of what is not kept.

import type { RetentionReport } from "../../runs/retention.ts";

export function renderRetention({ limits, isPreview, runs, blobs, bundles, leftovers }: RetentionReport) {
  return {
    dry_run: isPreview,
    older_than_days: limits.olderThanDays,
    max_bytes: limits.bytesMax,
    runs,
    blobs,
    bundles,
    leftovers,
    bytes_freed: blobs.bytes + bundles.bytes + leftovers.bytes,
  };
}
