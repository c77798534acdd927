// A run followed in several views at once: one frame per event, with each view of it under its channel's name.

import { eventType } from "../../engine/event.ts";
import { terminalEventTypes } from "../../engine/event-types.ts";
import { toHumanView } from "../../runs/history/human.ts";
import { toLog } from "../../runs/history/logs.ts";
import { renderEvent } from "../../runs/history/public-event.ts";
import type { RunContext } from "../../runs/history/run-context.ts";
import { toTimeline } from "../../runs/history/timeline.ts";
import { frame, type Render } from "./sse-chunk.ts";

export const channelNames = ["events", "logs", "timeline", "human"] as const;
export type ChannelName = (typeof channelNames)[number];

/**
 * @param given names separated by commas; all channels without it
 * @returns the channels that are asked for, each once and always in the same order; null when one is none
 */
export function readChannels(given: string | undefined): readonly ChannelName[] | null {
  if (given === undefined) return channelNames;
  const asked = new Set(given.split(",").map((name) => name.trim()));
  const known = channelNames.filter((name) => asked.delete(name));
  return asked.size === 0 ? known : null;
}

/**
 * One frame per event with all views of it, so that no reader is ever cut off between two of them.
 *
 * @param shownLine what the API shows of an event's line in the channel `events`
 */
export function mergedView(
  run: RunContext,
  channels: readonly ChannelName[],
  shownLine: (line: string) => string = (line) => line,
): Render {
  const head = `"run_id":${JSON.stringify(run.runId)},"channels":{`;
  return (seq, line) => {
    const type = eventType(line);
    let views = "";
    for (const channel of channels) {
      const shown = viewIn(channel, run, seq, channel === "events" ? shownLine(line) : line);
      if (shown !== null) views += `${views === "" ? "" : ","}"${channel}":${shown}`;
    }
    if (views === "" && !terminalEventTypes.has(type)) return null;
    return frame(seq, type, `{"id":${seq},${head}${views}}}`);
  };
}

function viewIn(channel: ChannelName, run: RunContext, seq: number, line: string): string | null {
  switch (channel) {
    case "events":
      return renderEvent(run.runId, seq, line);
    case "logs":
      return asJson(toLog(run, line));
    case "timeline":
      return asJson(toTimeline(run, seq, line));
    case "human":
      return asJson(toHumanView(run, seq, line));
    default:
      return channel satisfies never;
  }
}

function asJson(record: object | null): string | null {
  return record === null ? null : JSON.stringify(record);
}
