// @ts-check
// What the doctor says of a check, as a state.

/** @type {Readonly<Record<string, { state: string, name: string }>>} */
const states = {
  ok: { state: "completed", name: "Well" },
  warn: { state: "retrying", name: "Look at it" },
  fail: { state: "failed", name: "Broken" },
};

/** @param {string} status @returns {{ state: string, name: string }} */
export const findingState = (status) => states[status] ?? { state: "pending", name: status };
