// Who a package says it is: config `identity`, else manifest `metadata`, field by field; at last the folder's name.

import type { Graph } from "../engine/graph.ts";
import type { Fields } from "../engine/manifest/fields.ts";
import { quoted } from "../engine/manifest/problems.ts";
import { nameList, type Reading } from "./describe-reading.ts";
import type { PackageIdentity } from "./package-description.ts";

const BLUEPRINT_ID_PATTERN = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const BLUEPRINT_ID_CHARS_MAX = 64;
const TAGS_MAX = 50;

const identityFields = ["blueprint_id", "name", "description", "version", "category", "tags"] as const;

/**
 * @param given.folderName what stands in for an id and a name that the package does not give; null where nobody knows
 *   a folder, and nobody asks for the id
 * @param given.graph null when the manifest is none that can run
 */
export function readIdentity(
  manifest: Reading,
  configuration: Reading,
  given: { readonly folderName: string | null; readonly graph: Graph | null },
): PackageIdentity {
  const { folderName, graph } = given;
  const standIn = folderName ?? graph?.graphId ?? "";
  const metadata = manifest.fields.object("metadata");
  const identity = configuration.fields.object("identity");
  configuration.warnOfUnknown(identity, identityFields);
  // Both are read, so that a mistake in the one that loses is told too.
  const first = <Value>(read: (fields: Fields) => Value | null): Value | null => {
    const [own, other] = [read(identity), read(metadata)];
    return own ?? other;
  };
  const text = (name: string) => first((fields) => fields.text(name) || null);
  const blueprintId = first(readId);
  const byFolder = idOfFolder(standIn);
  if (blueprintId === null && folderName !== null && byFolder !== folderName) {
    const said = `is missing, and the folder's name, ${quoted(folderName)}, is no id: it is called ${quoted(byFolder)}`;
    configuration.warn(identity, "blueprint_id", "no_id", said);
  }
  return {
    blueprintId: blueprintId ?? byFolder,
    name: text("name") ?? graph?.jobName ?? standIn,
    description: text("description") ?? "",
    version: text("version"),
    category: first((fields) => fields.name("category", null)),
    tags:
      first((fields) => (fields.raw("tags") === undefined ? null : nameList(fields, "tags", TAGS_MAX))) ?? [],
  };
}

function readId(fields: Fields): string | null {
  const id = fields.name("blueprint_id", null);
  if (id === null || BLUEPRINT_ID_PATTERN.test(id)) return id;
  const allowed = "1 to 64 of a to z, 0 to 9, _ and -, and a letter or digit first";
  fields.report("blueprint_id", "invalid_value", `is ${quoted(id)}: it must have ${allowed}`);
  return null;
}

/** A folder's name as an id: itself when it is one, else what of it can stand in one. */
export function idOfFolder(folderName: string): string {
  if (BLUEPRINT_ID_PATTERN.test(folderName)) return folderName;
  const slug = folderName.toLowerCase().replace(/[^a-z0-9_]+/g, "-");
  return (
    slug
      .replace(/^[-_]+/, "")
      .slice(0, BLUEPRINT_ID_CHARS_MAX)
      .replace(/-+$/, "") || "blueprint"
  );
}
