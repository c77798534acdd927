// Dashboards on the node that runs them. A run's graph has the addresses of the node that launched it; when another node has
// taken the run over, its dashboard is bound and reached there, at the port that it has.

import type { ServiceSpec } from "../engine/service.ts";
import { placeVariables, publicUrlOf, WEB_UI_NODE, type WebUiPlace } from "./inject.ts";

/** @param areKeyed whether they let in only those who have the run's key */
export function dashboardsHere(place: WebUiPlace, areKeyed: boolean) {
  return {
    asksForKey: (agentId: string | null): boolean => areKeyed && agentId === WEB_UI_NODE,

    /** A service as it is offered on this node. */
    service(spec: ServiceSpec, agentId: string | null): ServiceSpec {
      if (agentId !== WEB_UI_NODE || spec.port === null) return spec;
      return { ...spec, address: place.host, publicUrl: publicUrlOf(place, spec.port) };
    },

    /** The variables of an agent's command on this node. */
    environment(
      agentId: string,
      declared: Readonly<Record<string, string>>,
    ): Readonly<Record<string, string>> {
      const port = declared.SVC_WEB_UI_PORT;
      if (agentId !== WEB_UI_NODE || port === undefined) return declared;
      return { ...declared, ...placeVariables(place, Number(port)) };
    },
  };
}
