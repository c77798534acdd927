// The catalogue of failures: every code with which an attempt or a run can fail, and what a person can do about it.
// docs/errors.md is made from it. A code that was retired is never used again.

export type FailureCategory =
  | "user_code"
  | "timeout"
  | "cancelled"
  | "resource"
  | "infrastructure"
  | "validation"
  | "dependency";

export interface FailureKind {
  readonly category: FailureCategory;
  /** Whether the same attempt may succeed when it is made again. */
  readonly retryable: boolean;
  /** What happened, as the documentation shows it. */
  readonly meaning: string;
  /** What to do next, for the person who reads the failure. */
  readonly remediation: string;
}

export const failureCatalogue = {
  "executor.exit_nonzero": {
    category: "user_code",
    retryable: true,
    meaning: "The command exited with a non-zero code.",
    remediation: "Read stderr_tail and the agent's log events, fix the command, and run the job again.",
  },
  "executor.killed_by_signal": {
    category: "user_code",
    retryable: true,
    meaning: "The command was killed by a signal that the runtime did not send.",
    remediation:
      "SIGKILL often means that memory ran out, SIGSEGV a crash in native code. Check the command's memory use and its own logs.",
  },
  "executor.timeout": {
    category: "timeout",
    retryable: true,
    meaning: "The command took longer than its config.timeout_seconds.",
    remediation: "Make the command faster, give it less work, or raise the node's config.timeout_seconds.",
  },
  "executor.input_unread": {
    category: "user_code",
    retryable: true,
    meaning: "A long-lived command left more than 160 MiB of messages unread on its stdin, and was killed.",
    remediation: "Read stdin line by line while the command works, or send it fewer messages at a time.",
  },
  "executor.spawn_failed": {
    category: "user_code",
    retryable: false,
    meaning: "The command cannot be started.",
    remediation:
      "Check that the command's first word exists on the runtime's PATH or in the payload, and that it may be executed.",
  },
  "executor.staging_failed": {
    category: "user_code",
    retryable: false,
    meaning: "An upload_path or the workdir does not exist, or leaves its folder.",
    remediation: "Check the node's upload_path, upload_paths and workdir against the folders in payloads/.",
  },
  "executor.invalid_output": {
    category: "user_code",
    retryable: false,
    meaning: "The result object on stdout is invalid; the message lists the problems.",
    remediation: "Print the object as docs/workers.md describes it; it lists the keys and their limits.",
  },
  "executor.artifact_failed": {
    category: "infrastructure",
    retryable: true,
    meaning: "A file in SVC_OUTPUT_DIR could not be stored.",
    remediation:
      "Check the free space and the permissions of SVC_HOME, or that the store in SVC_BLOB_URL answers and takes files; then run the job again.",
  },
  "executor.workspace_failed": {
    category: "infrastructure",
    retryable: true,
    meaning: "The runtime could not write or read the folders in which the command runs.",
    remediation: "Check the free space and the permissions of SVC_HOME, then run the job again.",
  },
  "executor.runner_unavailable": {
    category: "dependency",
    retryable: false,
    meaning: "The runtime has no runner of the name in config.runner_module.",
    remediation: "Use HostLocal or Sandbox, or run the job on a runtime that has the runner.",
  },
  "sandbox.unavailable": {
    category: "dependency",
    retryable: false,
    meaning: "The command is to run in a sandbox, and this node has none. It was not run without one.",
    remediation:
      "Run `troupe doctor` on the node: it says what is missing. docs/sandbox.md has what a sandbox needs.",
  },
  "sandbox.required": {
    category: "validation",
    retryable: false,
    meaning:
      "The command or module is to run without a sandbox, and this runtime has SVC_REQUIRE_SANDBOX=true.",
    remediation:
      'Set the node\'s runner_module to "Sandbox", or a module\'s isolation to "process", or run the job on a runtime without that setting.',
  },
  "sandbox.not_made": {
    category: "infrastructure",
    retryable: true,
    meaning: "The sandbox could not be made; the command was not started.",
    remediation:
      "What bubblewrap or gVisor said is in details.message. Run `troupe doctor`, and check that no path of the policy is above sandbox_upload_path.",
  },
  "sandbox.policy_invalid": {
    category: "user_code",
    retryable: false,
    meaning: "The file in config.policy does not exist in payloads/, or is no valid policy.",
    remediation: "Fix the file: details.message lists what is wrong. docs/sandbox.md has the fields.",
  },
  "sandbox.policy_unmet": {
    category: "dependency",
    retryable: false,
    meaning:
      "The policy names a path or a device that the machine does not have, or that no sandbox is shown.",
    remediation: "Provide the path on the machine, or take it out of the policy (docs/sandbox.md).",
  },
  "sandbox.network_unreachable": {
    category: "infrastructure",
    retryable: true,
    meaning:
      "A host of the policy that is to be checked cannot be reached from the sandbox, or its relay did not start; the command was not started.",
    remediation:
      "See in details.message which host, and why. Make it reachable from the node, list its address with the port where that is a private one, or take it out of network.allow; `troupe sandbox check` tries them.",
  },
  "executor.outcome_lost": {
    category: "infrastructure",
    retryable: true,
    meaning: "Attempt outcome unknown: its supervisor process was lost, often because memory ran out.",
    remediation: "Read the runtime's own log and check the machine's memory, then run the job again.",
  },
  "sensor.file_invalid": {
    category: "user_code",
    retryable: false,
    meaning: "The sensor's file path is not allowed.",
    remediation:
      "Set the node's config.file to an absolute path, or to a path inside the bundle's payloads/.",
  },
  "module.threw": {
    category: "user_code",
    retryable: true,
    meaning: "handle() threw, or ended its thread.",
    remediation: "Fix the module: details.message has the error and the first lines of its stack.",
  },
  "module.load_failed": {
    category: "user_code",
    retryable: false,
    meaning: "The module does not exist, cannot be loaded, or exports no function handle.",
    remediation: "Check config.module: an ES module inside payloads/ that exports an async function handle.",
  },
  "module.timeout": {
    category: "timeout",
    retryable: true,
    meaning: "handle() took longer than its config.timeout_seconds.",
    remediation: "Make handle() faster, or raise the node's config.timeout_seconds.",
  },
  "module.invalid_output": {
    category: "user_code",
    retryable: false,
    meaning: "handle() returned an invalid result; the message lists the problems.",
    remediation: "Return nothing or {emit?, state?, complete?}; docs/workers.md describes them.",
  },
  "module.out_of_memory": {
    category: "resource",
    retryable: false,
    meaning:
      "The module needed more memory than it may have: 512 MiB, or in a process the memory_mb of its sandbox.",
    remediation: "Hold less at a time, or do the work in a command, which has the whole machine's memory.",
  },
  "message.body_too_large": {
    category: "user_code",
    retryable: false,
    meaning:
      "A message body, a state or a result is larger than it may be; docs/operating.md has the limits.",
    remediation: "Write large data to SVC_OUTPUT_DIR and send its path or artifact id instead of the data.",
  },
  "configuration.variable_missing": {
    category: "dependency",
    retryable: false,
    meaning:
      'The configuration names a variable by {"$env": …} that the runtime\'s environment does not have.',
    remediation:
      "Set the variable in the environment that the runtime is started with, restart it, and start a new run; or send the job another configuration.",
  },
  "configuration.variable_withheld": {
    category: "user_code",
    retryable: false,
    meaning:
      'The configuration names, by {"$env": …}, a variable with a secret of the runtime itself, such as SVC_API_TOKEN.',
    remediation:
      "Take the variable out of the configuration. A worker that must call the API gets a token of its own, in a variable of another name.",
  },
  "configuration.unreadable": {
    category: "infrastructure",
    retryable: false,
    meaning: "Secrets of the configuration were encrypted with another key, or are damaged.",
    remediation:
      "Restore the secret.key of SVC_HOME, or set SVC_SECRET_KEY to the key the secrets were encrypted with. If it is lost, send the job's secrets again.",
  },
  "resource.unsatisfiable": {
    category: "resource",
    retryable: false,
    meaning:
      "The pool does not exist, or will never have so many slots, or the machine not such resources, or the node lacks a label.",
    remediation:
      "Ask for fewer slots or resources, another pool or other node_labels, or change SVC_EXECUTOR_POOL_CAPACITIES or SVC_NODE_LABELS.",
  },
  "resource.memory_exceeded": {
    category: "resource",
    retryable: false,
    meaning: "The command needed more memory than the resources.memory_mb of its node, and was ended.",
    remediation: "Raise the node's resources.memory_mb, or let the command use less memory.",
  },
  "resource.volume_full": {
    category: "resource",
    retryable: false,
    meaning:
      "A volume holds more than the size_mb of its node's resources, or the machine has too many volumes.",
    remediation:
      "Remove what is not needed from SVC_HOME/volumes/NAME, or the whole volume (troupe resource remove-volume NAME), or raise size_mb.",
  },
  "resource.volume_elsewhere": {
    category: "resource",
    retryable: true,
    meaning:
      "Two nodes wanted to make a volume of one name at once, and the other one has it; or it is on a node that has left.",
    remediation:
      "Start the run again: its command goes to the node that has the volume. If that node does not come back, remove it (nodes:remove).",
  },
  "resource.exhausted": {
    category: "resource",
    retryable: true,
    meaning: "The machine had no process, open file or memory left for the attempt; the message says which.",
    remediation:
      "Raise the limit that the message names (ulimit), give the machine more memory, or let fewer commands run at once (SVC_EXECUTOR_MAX_CONCURRENCY).",
  },
  "job.timeout": {
    category: "timeout",
    retryable: false,
    meaning: "The run took longer than its policies.timeout_seconds.",
    remediation: "Raise policies.timeout_seconds in the manifest, or make the work smaller.",
  },
  "job.message_limit": {
    category: "validation",
    retryable: false,
    meaning: "A batch job has sent more messages than a batch job may.",
    remediation:
      "The graph loops without end. Bound the loop (with an aggregator that completes the run), or make it a service job.",
  },
  "manifest.invalid": {
    category: "validation",
    retryable: false,
    meaning: "The manifest of a job that was accepted by another version is not supported by this version.",
    remediation: "Run `troupe validate` on the manifest; it names every problem.",
  },
  "blueprint.not_prepared": {
    category: "dependency",
    retryable: false,
    meaning: "The job's blueprint could not be prepared, so the run was not started.",
    remediation:
      "Read the blueprint's last operation, fix what it names, add the blueprint again, and start a new run.",
  },
  "preparation.folder_failed": {
    category: "infrastructure",
    retryable: true,
    meaning: "A folder that the user chose could not be copied into the run's payload.",
    remediation:
      "Check that the folder is there, may be read, and does not change while it is copied; and that the disk has room.",
  },
  "preparation.input_invalid": {
    category: "validation",
    retryable: false,
    meaning: "The configuration did not pass the package's own validation once its folders were staged.",
    remediation: "Read the message, correct the configuration, and start a new run.",
  },
  "preparation.requirement_unmet": {
    category: "dependency",
    retryable: false,
    meaning: "A requirement of the package was met when the run was accepted, and no longer is.",
    remediation: "Provide what the message names, and start a new run.",
  },
  "preparation.no_free_port": {
    category: "resource",
    retryable: true,
    meaning: "No port was free for the run's dashboard when it was launched.",
    remediation:
      "Wait until a run with a dashboard has ended, or widen the range of ports for dashboards; then start a new run.",
  },
  "preparation.unexpected_error": {
    category: "infrastructure",
    retryable: true,
    meaning: "The preparation of the launch failed with an unexpected error, after many attempts.",
    remediation:
      "An error of the system, such as EIO, tells what is wrong with the machine or the disk of SVC_HOME; any other is in the runtime's log. Fix it, then start a new run.",
  },
  "service.required_unavailable": {
    category: "dependency",
    retryable: false,
    meaning: "A service that the graph requires does not exist, or its checks do not pass.",
    remediation:
      "Start what provides the service, wait until GET /services shows it as passing, and start a new run.",
  },
  "inputs.invalid": {
    category: "validation",
    retryable: false,
    meaning: "The run's inputs do not match the graph's entrypoints; the message lists the problems.",
    remediation: "Start a new run whose inputs name the entrypoints of the manifest.",
  },
  "runtime.recovered_interrupted": {
    category: "infrastructure",
    retryable: false,
    meaning:
      "The attempt was interrupted by a stop or a crash of the runtime, and the node must not run twice.",
    remediation:
      "Check what the command had done, then run the job again. A node that may run twice needs no safe_to_retry: false.",
  },
  "runtime.record_damaged": {
    category: "infrastructure",
    retryable: false,
    meaning: "A record of the job in the database cannot be written or read. Other jobs continue.",
    remediation:
      "Run `troupe doctor` to check the database, restore a backup if it finds damage, and run the job again.",
  },
  "runtime.bundle_missing": {
    category: "infrastructure",
    retryable: false,
    meaning: "The job's bundle is no longer in SVC_HOME, or was changed there.",
    remediation: "Register the bundle again, and submit the job again.",
  },
} as const satisfies Readonly<Record<string, FailureKind>>;

export type FailureCode = keyof typeof failureCatalogue;
