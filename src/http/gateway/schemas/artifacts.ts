// What a run made, and its evidence as files (CONTRACTS §3 "Artifacts"; spec "Run artifact entry").

import { artifactKinds } from "../../../runs/store/stored-artifact.ts";
import { Type } from "../../core/type.ts";
import { answerObject, nullable, pageOf, pageQuery, strictObject, Time } from "./common.ts";
import { oneOf } from "./evidence.ts";

/** A response that is no JSON. */
export const bytesOf = (description: string) => ({
  description,
  content: { "application/octet-stream": { schema: Type.String({ format: "binary" }) } },
});

const artifact = {
  artifact_id: Type.String({ examples: ["art_01k9z1v7m3e8q2x4c6t8b0n5dj"] }),
  name: Type.String({
    description: "Of a worker's file, below its SVC_OUTPUT_DIR.",
    examples: ["report/summary.html"],
  }),
  kind: oneOf(artifactKinds, {
    description: "evidence: what is told of the run, under stable ids. output: what the run was for.",
  }),
  size: Type.Integer({ description: "Bytes.", examples: [18_211] }),
  sha256: Type.String({ description: "64 hex digits; also the ETag of the bytes." }),
  content_type: Type.String({ examples: ["text/html; charset=utf-8"] }),
  url: Type.String({ description: "Where its bytes are; good as long as the run is." }),
  created_at: Time("When it was kept; of evidence, when the run was created."),
  producer: nullable(Type.String({ description: "The agent that made it; null for evidence." })),
};

export const ArtifactPageSchema = pageOf(
  answerObject(artifact),
  "artifacts, evidence first in a fixed order, then oldest first",
);

export const OutputPageSchema = pageOf(
  answerObject({
    ...artifact,
    title: nullable(Type.String({ description: "For people.", examples: ["The weekly digest"] })),
    primary: Type.Boolean({ description: "What to show first." }),
  }),
  "outputs, primary ones first, then oldest first",
);

export const ArtifactsQuery = strictObject({
  evidence: Type.Optional(
    Type.Boolean({
      description: "false leaves out the run's evidence, and spares the making of it.",
      default: true,
    }),
  ),
  ...pageQuery,
});

export const OutputsQuery = strictObject({ ...pageQuery });

export const ArtifactHeaders = Type.Object({
  range: Type.Optional(
    Type.String({ description: "One range of bytes; of several, all is sent.", examples: ["bytes=0-1023"] }),
  ),
  "if-range": Type.Optional(Type.String({ description: "The ETag that the range is meant for." })),
  "if-none-match": Type.Optional(Type.String({ description: "ETags that the client has." })),
});
