// GET /system/settings: what the program that answers was started with.

import type { FastifyInstance } from "fastify";
import { addRoutes, get } from "../core/route.ts";
import { Type } from "../core/type.ts";

const SettingsSchema = Type.Object(
  {
    settings: Type.Array(
      Type.Object({
        variable: Type.String({ examples: ["SVC_HOME"] }),
        value: Type.String("As it is in use; a secret is masked."),
        from: Type.OneOf(
          ["default", "environment", "cluster.json"],
          "cluster.json: of a home that has joined a cluster.",
        ),
        meaning: Type.String("For people."),
      }),
      "Every one, in the order of `troupe config`.",
    ),
  },
  "What the program that answers was started with.",
);

/** By the names that clients see. */
export const schemas = { Settings: SettingsSchema };

export interface ShownSetting {
  readonly variable: string;
  readonly value: string;
  readonly from: string;
  readonly meaning: string;
}

export interface Parts {
  /** With secrets masked. */
  readonly settings: () => readonly ShownSetting[];
}

export function gatewayRoutes(api: FastifyInstance, { settings }: Parts): void {
  addRoutes(api, "system", [
    get("/system/settings", {
      operationId: "getSettings",
      summary: "See the settings in use",
      description:
        "Of the program that answers: every variable with its value, where the value is from, and what it means. Secrets are masked.",
      answers: { 200: SettingsSchema },
      handle: () => ({ settings: settings() }),
    }),
  ]);
}
