// @ts-check
// Why messages were not processed, in words.

export const reasons = new Map(
  Object.entries({
    ttl_expired: "Its time was over",
    target_gone: "Its agent has ended or does not exist",
    mailbox_full: "Its agent had no room",
    processing_failed: "Its processing failed",
  }),
);
