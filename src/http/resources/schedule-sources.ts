// Whose runs a schedule of the runtime API starts: those of a job that is there, or of one that is made with it from a manifest, a
// bundle or a blueprint.

import { isAbsolute } from "node:path";
import type { Bundles } from "../../bundles/bundles.ts";
import { MANIFEST_FILE, PAYLOADS_FOLDER } from "../../bundles/layout.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { JobSource } from "../../launch/records.ts";
import { ApiError } from "../core/runtime-errors.ts";
import { type Static, Type } from "../core/type.ts";
import { CreateScheduleBody, Target } from "./schedule-view.ts";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const sources = {
  manifest: Type.JsonObject("A job is made of it with the schedule."),
  bundle_id: Type.String("A registered bundle: a job is made of it with the schedule."),
};

const { target: _target, ...settings } = CreateScheduleBody.properties;

/** What POST /schedules of the runtime API takes. */
export const RuntimeScheduleBody = Type.Input({
  ...settings,
  ...sources,
  target: Type.Input({ ...Target.properties, ...sources }),
  payloads: Type.Record(
    Type.String("Base64."),
    "Files of the manifest's commands, by their paths below payloads/.",
  ),
  bundle_path: Type.String(
    "The absolute path of a bundle's folder, or of its zip, on the runtime's machine.",
  ),
});

export interface SourceParts {
  readonly bundles: Pick<Bundles, "registerFiles" | "registerFolder" | "registerZip">;
}

/** @returns the job that is named, or what one is made from */
export async function sourceOf(
  { bundles }: SourceParts,
  given: Static<typeof RuntimeScheduleBody>,
): Promise<{ readonly jobId: string } | JobSource> {
  const { payloads, bundle_path: path, target = {} } = given;
  const named = (["job_id", "blueprint_id", "bundle_id", "manifest"] as const).flatMap((name) =>
    [given[name], target[name]].filter((one) => one !== undefined),
  );
  if (named.length + (path === undefined ? 0 : 1) !== 1) {
    const message = "exactly one of manifest, bundle_id, bundle_path, job_id and blueprint_id must be given";
    throw new ApiError(400, message);
  }
  const manifest = given.manifest ?? target.manifest;
  if (payloads !== undefined && manifest === undefined)
    throw new ApiError(400, "payloads are the files of a manifest: give it too");
  const jobId = given.job_id ?? target.job_id;
  if (jobId !== undefined) return { jobId };
  const blueprintId = given.blueprint_id ?? target.blueprint_id;
  if (blueprintId !== undefined) return { kind: "blueprint", blueprintId };
  const bundleId = given.bundle_id ?? target.bundle_id;
  return { kind: "bundle", bundleId: bundleId ?? (await registered(bundles, { manifest, payloads, path })) };
}

interface Unregistered {
  readonly manifest: JsonObject | undefined;
  readonly payloads: Readonly<Record<string, string>> | undefined;
  readonly path: string | undefined;
}

/** @returns the bundle's id */
async function registered(
  bundles: SourceParts["bundles"],
  { manifest, payloads = {}, path = "" }: Unregistered,
) {
  if (manifest === undefined) {
    if (!isAbsolute(path))
      throw new ApiError(400, "bundle_path must be an absolute path on the runtime's machine");
    const isZip = path.endsWith(".zip");
    return (await (isZip ? bundles.registerZip({ file: path }) : bundles.registerFolder({ path }))).bundleId;
  }
  const files = Object.entries(payloads).map(([name, text]) => {
    if (!BASE64.test(text)) throw new ApiError(400, `payloads: ${name} is no base64`);
    return [`${PAYLOADS_FOLDER}/${name}`, Buffer.from(text, "base64")] as const;
  });
  const all = new Map([[MANIFEST_FILE, Buffer.from(JSON.stringify(manifest))], ...files]);
  return (await bundles.registerFiles(all)).bundleId;
}
