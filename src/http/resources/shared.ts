// The resources whose routes both APIs have, and what their routes take.

import type { Api, PartsOf } from "./api.ts";
import * as artifacts from "./artifacts.ts";
import * as deadLetters from "./dead-letters.ts";
import * as events from "./events.ts";
import * as humanRequests from "./human-requests.ts";
import * as resource from "./resource.ts";
import * as results from "./results.ts";
import * as schedules from "./schedules.ts";
import * as services from "./services.ts";
import * as triggerEvents from "./trigger-events.ts";

export const sharedResources = [
  events,
  results,
  artifacts,
  humanRequests,
  deadLetters,
  services,
  schedules,
  triggerEvents,
  resource,
];

export type SharedParts = PartsOf<(typeof sharedResources)[number]["routes"]>;

export function addSharedRoutes(api: Api, parts: SharedParts): void {
  for (const { routes } of sharedResources) routes(api, parts);
}
