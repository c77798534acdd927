// Faults of models: content that is lost, taken for whole, or read by who should not.

import { type Mutation, mutationsOf } from "./mutation.ts";

const api = ["test/gateway/models.test.ts"];
const files = mutationsOf("src/models/model-files.ts", ["src/models/model-files.test.ts", ...api]);
const download = mutationsOf("src/models/download.ts", [...api, "test/integration/model-kill.test.ts"]);
const fetching = mutationsOf("src/models/fetch-content.ts", api);
const copying = mutationsOf("src/models/copy-content.ts", ["src/models/model-files.test.ts"]);
const unused = mutationsOf("src/models/unused-content.ts", api);
const installs = mutationsOf("src/models/installs.ts", api);
const models = mutationsOf("src/models/models.ts", api);

export const modelMutations: readonly Mutation[] = [
  files(
    "content of another hash is published",
    "if (sha256 !== null && content.sha256 !== sha256) {",
    "if (sha256 === null) {",
  ),
  files(
    "one content is on the disk many times",
    "const isThere = !isAnew && (await this.#linked(content.sha256, links));",
    "const isThere = false;",
  ),
  files(
    "content that another model has is fetched again",
    "if (!(await this.#linked(sha256, links))) return null;",
    "return null;",
  ),
  files("content that is made anew stays damaged", "if (isAnew) await removeTree(place);", ""),
  copying(
    "a file that changes while it is copied is taken",
    "if (!isSame(before, await source.stat()) || bytes !== before.size) throw new FileChanged();",
    "void bytes;",
  ),
  copying(
    "a copy may be written",
    'open(to, isClone ? "r" : "wx", READ_ONLY)',
    'open(to, isClone ? "r" : "wx")',
  ),
  download("a cut download begins anew", "let at = known.bytes;", "let at = known.bytes * 0;"),
  download(
    "a rest is hashed without its beginning",
    "if (isRest) await hashInto(hash, to, () => {});",
    "if (isRest) void hash;",
  ),
  download(
    "a redirect leads anywhere",
    "if (next === undefined || !isDownloadAddress(next))",
    "if (next === undefined)",
  ),
  fetching(
    "any file of the machine is a model",
    "if (isDeclared) return",
    "if (isDeclared || path !== null) return",
  ),
  fetching(
    "what a server says it wants to wait is not heard",
    "const waitMs = error.waitMs ?? Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** (tries - 1));",
    "const waitMs = WAIT_MAX_MS;",
  ),
  unused(
    "content that a run reads goes with an update",
    "return place !== null && (await inUseNow()).has(place);",
    "return false;",
  ),
  installs(
    "an update takes the content that was there",
    'kind === "model_update" ? sha256 : (sha256 ?? there)',
    "sha256 ?? there",
  ),
  models(
    "a pinned installation is updated",
    'if (before?.pinned && (kind === "model_update" || force))',
    "if (before?.pinned && force)",
  ),
  models(
    "a registration is deleted under its installation",
    "if (place !== undefined)",
    "if (place === null)",
  ),
  models(
    "a model is changed while an operation is open",
    "if (open !== null) throw busy(open);\n      return change",
    "return change",
  ),
];
