// The commands about models.

import { existsSync } from "node:fs";
import { all, command, limit, option, remote, withServer } from "./catalogue-options.ts";
import type { CommandGroup } from "./command.ts";

const wait = option("--wait", "Follow it to its end (the default); --no-wait only starts it.");
const force = option("--force", "Fetch it also when it is there, and in place of that.");

/** What is a file here is looked at here, without a server. */
const isFile = (word: string) => existsSync(word) || /[/\\]|\.(gguf|safetensors)$/.test(word);

export const models: CommandGroup = {
  name: "models",
  summary: "Register, install, serve, look at and remove models.",
  commands: [
    command({
      usage: "models list",
      summary: "List the models, by their ids.",
      options: [limit, all, ...remote],
      load: withServer(async () => (await import("./models.ts")).list),
    }),
    command({
      usage: "models show <model-id>",
      summary: "Show one model: where it comes from, what it is, where it is installed.",
      options: remote,
      load: withServer(async () => (await import("./models.ts")).show),
    }),
    command({
      usage: "models add <source>",
      summary: "Register a model; --install installs it, too.",
      details: [
        "SOURCE is a GGUF or safetensors file, a folder as Hugging Face has them (config.json and safetensors), https://…,",
        "ollama:NAME, openai:NAME or blueprint:ID/PATH. Files and folders are on the machine of the gateway.",
        "Example: troupe models add https://models.example.com/qwen3-4b.gguf --sha256 9f86d0… --install",
      ],
      options: [
        option("--id MODEL-ID", "Its id. Default: after the source."),
        option("--name NAME", "For people. Default: the id."),
        option("--sha256 HEX", "What a download has to be."),
        option(
          "--base-url URL",
          "Of ollama: (default http://127.0.0.1:11434) and openai:, where the server is.",
        ),
        option("--key FILE", "File with the API key of openai:, or the token of a download; - reads stdin."),
        option("--license NAME", "Such as apache-2.0. Default: what its file says."),
        option("--context N", "Tokens that it was made for. Default: what its file says."),
        option("--install", "Install it, and follow that."),
        wait,
        ...remote,
      ],
      load: withServer(async () => (await import("./models.ts")).add),
    }),
    command({
      usage: "models install <model-id>",
      summary: "Install a model: bring its content here, or have its server pull it.",
      details: ["Ctrl-C ends the view; the installation goes on."],
      options: [force, wait, ...remote],
      load: withServer(async () => (await import("./models.ts")).install),
    }),
    command({
      usage: "models update <model-id>",
      summary: "Bring what its source has now; what is installed stays until that is whole.",
      options: [force, wait, ...remote],
      load: withServer(async () => (await import("./models.ts")).update),
    }),
    command({
      usage: "models validate <file|model-id>",
      summary:
        "Look at a model: what it is, whether it is whole, and the memory it needs. A file needs no server.",
      details: ["Exit code: 0 it runs on this machine; 1 it is damaged, no model, or too large."],
      options: [
        option("--context N", "Tokens of the context. Default: what the model was made for, at most 8192."),
        ...remote,
      ],
      load: async () => {
        const [file, server] = await Promise.all([
          import("./model-check.ts"),
          withServer(async () => (await import("./models.ts")).validate)(),
        ]);
        return (call) => (isFile(call.words[0] ?? "") ? file.validate(call) : server(call));
      },
    }),
    command({
      usage: "models serve <model-id>",
      summary: "Serve a model in the OpenAI protocol, until it is stopped.",
      details: [
        "Clients are given {gateway}/api/v1/llm/v1 as their base URL, and ask for the model by its id.",
      ],
      options: [
        option("--context N", "Tokens of a request and its answer. Default: the model's own, at most 8192."),
        option("--concurrency N", "Requests answered at the same time. Default: 1; 8 of a server elsewhere."),
        option("--queue N", "Further requests that wait. Default: 64."),
        option(
          "--idle-unload SECONDS",
          "Ends its process after so long without a request; 0: never. Default: 300.",
        ),
        option("--embeddings", "It makes embeddings, and nothing else."),
        wait,
        ...remote,
      ],
      load: withServer(async () => (await import("./models.ts")).serve),
    }),
    command({
      usage: "models stop <model-id>",
      summary: "Serve a model no more; what is installed stays.",
      options: remote,
      load: withServer(async () => (await import("./models.ts")).stop),
    }),
    command({
      usage: "models remove <model-id>",
      summary: "Remove a model from this node, and its registration with the last node that has it.",
      details: ["Refused while a run or a blueprint needs it. Look at --dry-run first."],
      options: [
        option("--dry-run", "Only show what would go, and what needs it."),
        option("--force", "Remove it also when something needs it."),
        option("--keep", "Keep the registration."),
        ...remote,
      ],
      load: withServer(async () => (await import("./models.ts")).remove),
    }),
  ],
};
