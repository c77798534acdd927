import type { OptionSpec } from "./command.ts";

/** Of every command that talks to the gateway. */
export const url: OptionSpec = {
  name: "url",
  value: "URL",
  help: "The gateway to talk to. Default: http://127.0.0.1:<SVC_API_PORT>/api/v1",
};
