// JSON Schema of a sandbox's policy, in a node's config or in a file of its own.

import { DEVICE, DEVICES_MAX, MEBIBYTES_RANGE } from "../engine/manifest/resources.ts";
import {
  CPU_SECONDS_RANGE,
  HOST_AND_PORT,
  HOSTS_MAX,
  limitDefaults,
  PROCESSES_RANGE,
  READ_ONLY_MAX,
  VARIABLES_MAX,
} from "../engine/manifest/sandbox-policy.ts";
import { closed, flag, integer, list, name, path, type Schema, text } from "./schema-parts.ts";

const mebibytes = (description: string, fallback?: number): Schema =>
  integer(description, MEBIBYTES_RANGE.min, MEBIBYTES_RANGE.max, fallback);

export const sandboxSchema = closed(
  "What of its machine a sandboxed command may have beside its own files.",
  {
    network: closed("The hosts that it reaches; none by default.", {
      allow: list(
        "Hosts and ports; a host may begin with *. for one label.",
        name("A host and a port.", {
          pattern: HOST_AND_PORT.source.replaceAll("a-z", "A-Za-z"),
          examples: ["api.example.com:443"],
        }),
        { maxItems: HOSTS_MAX },
      ),
      check: flag("Whether they are tried from inside before the command starts.", false),
    }),
    read_only: list(
      "Folders and files of the machine that it may read, at the same paths.",
      path("An absolute path.", { pattern: "^/", examples: ["/srv/data"] }),
      { maxItems: READ_ONLY_MAX },
    ),
    devices: list(
      "Devices that it may use, by their paths.",
      text("A device.", { pattern: DEVICE.source, examples: ["/dev/dri/card0"] }),
      { maxItems: DEVICES_MAX },
    ),
    environment: list(
      "Names of the runtime's own variables that it gets.",
      name("A variable.", { pattern: "^[^=]+$" }),
      { maxItems: VARIABLES_MAX },
    ),
    limits: closed("How much it may use.", {
      memory_mb: mebibytes("Memory of all its processes in MiB."),
      processes: integer(
        "Processes and threads at a time.",
        PROCESSES_RANGE.min,
        PROCESSES_RANGE.max,
        limitDefaults.processes,
      ),
      file_mb: mebibytes("Size of one file in MiB.", limitDefaults.file_mb),
      cpu_seconds: integer("Processor time of one process.", CPU_SECONDS_RANGE.min, CPU_SECONDS_RANGE.max),
      tmp_mb: mebibytes("Size of /tmp, and of /dev/shm, in MiB.", limitDefaults.tmp_mb),
    }),
  },
);
