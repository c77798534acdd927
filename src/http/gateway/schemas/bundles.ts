// Bundle (spec gateway-api "Bundle", CONTRACTS §3).

import { Type } from "../../core/type.ts";
import { Finding } from "./blueprints.ts";
import { answerObject, pageOf, pageQuery, strictObject, Time } from "./common.ts";

export const BundleSchema = answerObject(
  {
    bundle_id: Type.String({ examples: ["bundle_3f1c0a9d2b7e4856"] }),
    name: Type.String(),
    graph_id: Type.String(),
    fingerprint: Type.String({ description: "SHA-256 over the bundle's files." }),
    size: Type.Integer({ description: "Bytes of all its files." }),
    created_at: Time("When it was first uploaded."),
    warnings: Type.Optional(
      Type.Array(Finding, {
        description: "What of the package is ignored, such as unknown fields of its manifest. Not in lists.",
      }),
    ),
  },
  { description: "An uploaded package: manifest, configuration, payload. The same content has the same id." },
);

export const BundlePageSchema = pageOf(BundleSchema, "bundles, newest first");

export const BundlesQuery = strictObject(pageQuery);
