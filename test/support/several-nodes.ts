// Several real programs on one PostgreSQL, each with a home of its own and a name.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startGateway } from "./gateway-api.ts";
import { returnPostgres, takePostgres } from "./postgres.ts";
import { type Program, temporaryHome } from "./program.ts";

export interface NodesOptions<Name extends string> {
  /** Whether they have a store of files in common; else each has files of its own. */
  readonly filesAreShared: boolean;
  /** Further variables. */
  readonly env?: (name: Name) => Readonly<Record<string, string>>;
}

export class Nodes<Name extends string> {
  readonly #options: NodesOptions<Name>;
  readonly #url: string;
  readonly #folder: string;
  readonly homes = {} as Record<Name, string>;
  readonly #programs = new Map<Name, Program>();

  private constructor(options: NodesOptions<Name>, url: string, folder: string) {
    this.#options = options;
    this.#url = url;
    this.#folder = folder;
  }

  static async start<Name extends string>(
    names: readonly Name[],
    options: NodesOptions<Name>,
  ): Promise<Nodes<Name>> {
    const [url, folder] = await Promise.all([takePostgres(), mkdtemp(join(tmpdir(), "troupe-shared-"))]);
    const nodes = new Nodes(options, url, folder);
    for (const name of names) {
      nodes.homes[name] = await temporaryHome();
      await nodes.start(name);
    }
    return nodes;
  }

  environmentOf(name: Name): Readonly<Record<string, string>> {
    const { filesAreShared, env } = this.#options;
    return {
      SVC_DATABASE_URL: this.#url,
      ...(filesAreShared && { SVC_BLOB_URL: pathToFileURL(this.#folder).href }),
      SVC_SECRET_KEY: "00".repeat(32),
      SVC_NODE_NAME: name,
      // The shortest.
      SVC_NODE_LEASE_SECONDS: "10",
      ...env?.(name),
    };
  }

  /** Starts a program in the home of its name, again if it has ended. */
  async start(name: Name): Promise<void> {
    const env = this.environmentOf(name);
    this.#programs.set(name, await startGateway({ home: this.homes[name], env }));
  }

  /** The program that was started last under a name. */
  of(name: Name): Program {
    return this.#programs.get(name)!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#programs.values()].map((program) => program.stop()));
    await returnPostgres(this.#url);
    const paths = [this.#folder, ...Object.values<string>(this.homes)];
    await Promise.all(paths.map((path) => rm(path, { recursive: true, force: true })));
  }
}
