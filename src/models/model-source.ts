// Where a model comes from, as it is registered (CONTRACTS section 10): {"file": "/path"}, {"url": "https://…", "sha256": "…"},
// {"payload": "path", "blueprint_id": "…"}, {"folder": "/path"}, {"ollama": {base_url, model}} or
// {"openai": {base_url, model, api_key}}.

import { isAbsolute, posix } from "node:path";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import type { DomainErrorEntry } from "../lib/domain-error.ts";
import { isDownloadAddress } from "./download.ts";

export type ModelSource =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "url"; readonly url: string; readonly sha256: string; readonly token: string | null }
  /** A path inside a blueprint's payloads/. */
  | { readonly kind: "payload"; readonly path: string; readonly blueprintId: string }
  /** A folder as Hugging Face has them: config.json, and the weights as safetensors. */
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "ollama"; readonly baseUrl: string; readonly model: string }
  | {
      readonly kind: "openai";
      /** What requests are put behind: https://api.example.com/v1. */
      readonly baseUrl: string;
      readonly model: string;
      readonly apiKey: string | null;
    };

export const sourceKinds = ["file", "url", "payload", "folder", "ollama", "openai"] as const;

const SHA256 = /^[0-9a-f]{64}$/;
const TEXT_MAX = 4_096;

/** Which further members a kind has: true for those that have to be there. */
const members: Readonly<Record<(typeof sourceKinds)[number], Readonly<Record<string, boolean>>>> = {
  file: {},
  url: { sha256: true, token: false },
  payload: { blueprint_id: true },
  folder: {},
  ollama: {},
  openai: {},
};
const ofServers: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
  ollama: { base_url: true, model: true },
  openai: { base_url: true, model: true, api_key: false },
};

/**
 * The mistakes in a source; none when it can be used.
 *
 * @param source in plaintext
 * @param at JSON Pointer of it
 */
export function sourceProblems(source: JsonObject, at: string): readonly DomainErrorEntry[] {
  const wrong = (path: string, message: string) => [{ path: at + path, code: "invalid_value", message }];
  const kinds = sourceKinds.filter((one) => Object.hasOwn(source, one));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) return wrong("", `must have one of ${sourceKinds.join(", ")}`);
  const server = ofServers[kind];
  const { [kind]: own, ...others } = source;
  if (server !== undefined && !isObject(own))
    return wrong(`/${kind}`, "must be an object with base_url and model");
  const found = [
    ...membersOf(others, members[kind]).map(({ path, message }) => wrong(path, message)),
    ...(server === undefined ? [] : membersOf(own as JsonObject, server)).map(({ path, message }) =>
      wrong(`/${kind}${path}`, message),
    ),
    ...(server === undefined && !isText(own) ? [wrong(`/${kind}`, "must be a text")] : []),
  ].flat();
  if (found.length > 0) return found;
  return valueProblems(sourceOf(source)).flatMap(({ path, message }) => wrong(path, message));
}

interface Mistake {
  readonly path: string;
  readonly message: string;
}

const isText = (value: JsonValue | undefined): value is string =>
  typeof value === "string" && value !== "" && value.length <= TEXT_MAX && !value.includes("\0");

function membersOf(given: JsonObject, known: Readonly<Record<string, boolean>>): readonly Mistake[] {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name));
  const missing = Object.keys(known).filter((name) => known[name] === true && !Object.hasOwn(given, name));
  const noTexts = Object.keys(given).filter((name) => Object.hasOwn(known, name) && !isText(given[name]));
  return [
    ...unknown.map((name) => ({ path: `/${name}`, message: "is no member of this kind of source" })),
    ...missing.map((name) => ({ path: `/${name}`, message: "is missing" })),
    ...noTexts.map((name) => ({ path: `/${name}`, message: "must be a text" })),
  ];
}

function valueProblems(source: ModelSource): readonly Mistake[] {
  switch (source.kind) {
    case "file":
    case "folder":
      return isAbsolute(source.path)
        ? []
        : [{ path: `/${source.kind}`, message: "must be an absolute path on the machine of the gateway" }];
    case "payload": {
      const path = posix.normalize(source.path);
      const isInside = !isAbsolute(path) && path !== ".." && !path.startsWith("../");
      return isInside
        ? []
        : [{ path: "/payload", message: "must be a path inside the blueprint's payloads/" }];
    }
    case "url":
      return [
        ...(isDownloadAddress(source.url)
          ? []
          : [
              {
                path: "/url",
                message: "must be an https address without user and password, or http of this machine",
              },
            ]),
        ...(SHA256.test(source.sha256)
          ? []
          : [{ path: "/sha256", message: "must be 64 hexadecimal digits, in lower case" }]),
      ];
    case "ollama":
    case "openai": {
      const parsed = URL.parse(source.baseUrl);
      const isUsable =
        parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username + parsed.password === "";
      return isUsable
        ? []
        : [
            {
              path: `/${source.kind}/base_url`,
              message: "must be an http or https address without user and password",
            },
          ];
    }
    default:
      return source satisfies never;
  }
}

/** @param source in plaintext, without mistakes */
export function sourceOf(source: JsonObject): ModelSource {
  const text = (value: JsonValue | undefined) => String(value);
  const optional = (value: JsonValue | undefined) => (typeof value === "string" ? value : null);
  if (Object.hasOwn(source, "file")) return { kind: "file", path: text(source.file) };
  if (Object.hasOwn(source, "folder")) return { kind: "folder", path: text(source.folder) };
  if (Object.hasOwn(source, "payload"))
    return { kind: "payload", path: text(source.payload), blueprintId: text(source.blueprint_id) };
  if (Object.hasOwn(source, "url")) {
    const { url, sha256, token } = source;
    return { kind: "url", url: text(url), sha256: text(sha256), token: optional(token) };
  }
  const kind = Object.hasOwn(source, "ollama") ? "ollama" : "openai";
  const { base_url, model, api_key } = source[kind] as JsonObject;
  const baseUrl = text(base_url).replace(/\/+$/, "");
  return kind === "ollama"
    ? { kind, baseUrl, model: text(model) }
    : { kind, baseUrl, model: text(model), apiKey: optional(api_key) };
}
