// @ts-check
// What happens while the reader is elsewhere in the console, said to who cannot see it: runs that fail, and new questions.

import { plural } from "../dashboard/format.js";
import { watch } from "./live.js";
import { announce, shown } from "./parts/pieces.js";

/**
 * @param {readonly import("./live.js").Change[]} changes of runs that have ended and of questions
 * @returns {string} "" for nothing to say
 */
export function newsOf(changes) {
  const failed = changes.filter(({ topic, changes: now }) => topic === "runs" && now?.status === "failed");
  const asked = changes.filter(({ topic, changes: now }) => topic === "human" && now?.status === "pending");
  const [first] = failed;
  return [
    failed.length > 1 && `${plural(failed.length, "run")} have failed.`,
    failed.length === 1 && `A run has failed: ${shown(first?.changes.job_name, 80) || first?.id}.`,
    asked.length > 0 &&
      (asked.length === 1 ? "There is a new question." : `There are ${asked.length} new questions.`),
  ]
    .filter(Boolean)
    .join(" ");
}

/** @returns {() => void} ends it */
export const tellNews = () =>
  watch(["run-ends", "human"], (changes) => {
    const text = newsOf(changes ?? []);
    if (text !== "") announce(text);
  });
