// The policy of a sandbox: what of its machine a sandboxed command may have beside its own files.

export interface SandboxPolicy {
  readonly network: SandboxNetwork;
  /** Folders and files of the machine, absolute, that are there read-only, at the same paths. */
  readonly readOnly: readonly string[];
  /** Devices of the machine, by their paths. */
  readonly devices: readonly string[];
  /** Names of the runtime's own variables that are passed on. */
  readonly environment: readonly string[];
  readonly limits: SandboxLimits;
}

export interface SandboxNetwork {
  /** `host:port`; a host may begin with `*.`, which stands for one label. */
  readonly allow: readonly string[];
  /** Whether the hosts are tried from inside before the command starts. */
  readonly check: boolean;
}

export interface SandboxLimits {
  /** Of all its processes together; null: none of its own. */
  readonly memoryBytes: number | null;
  /** Processes and threads at a time. */
  readonly processes: number;
  /** Of one file. */
  readonly fileBytes: number;
  /** Processor time of one process; null: no limit. */
  readonly cpuSeconds: number | null;
  /** Of /tmp, and of /dev/shm. */
  readonly tmpBytes: number;
}

/** Where a sandbox has the workspace, unless the node says otherwise. */
export const SANDBOX_WORKSPACE = "/sandbox/job";

/** What makes sandboxes, as SVC_SANDBOX_ENGINE names it. */
export const sandboxEngines = ["bubblewrap", "gvisor"] as const;
export type SandboxEngineName = (typeof sandboxEngines)[number];

/** Whether sandboxes of an engine, by its name, can have devices of the machine. */
export const givesDevices = (engine: string | undefined) => engine !== "gvisor";

/** Nodes that have sandboxes have this label: commands that need one are placed by it. */
export const SANDBOX_LABEL = "troupe/sandbox";
export const sandboxLabels = { [SANDBOX_LABEL]: "yes" } as const;
/** And this one, which names what makes them. */
export const SANDBOX_ENGINE_LABEL = "troupe/sandbox-engine";
