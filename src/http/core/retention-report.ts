// What both APIs tell of a removal of what is not kept.

import type { RetentionReport } from "../../runs/retention.ts";

export function renderRetention(report: RetentionReport) {
  const { limits, isPreview, runs, blobs, bundles, leftovers, needsConfirmation } = report;
  return {
    dry_run: isPreview,
    older_than_days: limits.olderThanDays,
    max_bytes: limits.bytesMax,
    runs,
    blobs,
    bundles,
    leftovers,
    needs_confirmation: needsConfirmation,
    bytes_freed: blobs.bytes + bundles.bytes + leftovers.bytes,
  };
}
