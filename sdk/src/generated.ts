// The gateway's records and operations, as its OpenAPI document describes them. Made by sdk/generate.ts: do not edit,
// run `npm run sdk` when the API has changed.

/** Any JSON object. */
export type JsonObject = { readonly [key: string]: unknown };

/** What an operation takes that takes nothing. */
type Nothing = Readonly<Record<never, never>>;

/** How an operation is sent, and what comes back. */
export interface OperationShape {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Placeholders in braces. */
  readonly path: string;
  readonly body: "none" | "json" | "multipart";
  /** none: an answer without a body; events: server-sent events. */
  readonly answer: "none" | "json" | "events" | "bytes";
  /** Whether it takes an Idempotency-Key. */
  readonly takesKey: boolean;
  /** Statuses of failures that carry the answer all the same, such as 503 of a health. */
  readonly alsoAnswers?: readonly number[];
}

export type AddBlueprint = {
  /** Makes everything anew, and puts it in the place of what there is once it is whole. */
  readonly force?: boolean | undefined;
};

export type AddNode = {
  /** A name for people: visible ASCII characters. */
  readonly name: string;

  /** SVC_NODE_LABELS of the node. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
};

/** A node that is expected. GET /nodes shows it once it has joined. */
export type AddedNode = {
  /** Of the node that is expected. */
  readonly node_id: string;

  /** What the program joins with. Shown once: a repeated request is answered without it. */
  readonly join_token?: string | undefined;

  /** Until when the token is good. */
  readonly expires_at: string;
};

export type AnswerHuman = {
  /** One of the request's allowed_decisions, if it has any. */
  readonly decision: string;

  /** For the worker and people. */
  readonly comment?: string | null | undefined;

  /** Any JSON that the request's data_schema allows, for the worker; at most 65536 characters. */
  readonly data?: unknown | undefined;
};

export type Artifact = {
  readonly artifact_id: string;

  /** Of a worker's file, below its SVC_OUTPUT_DIR. */
  readonly name: string;

  /** evidence: what is told of the run, under stable ids. output: what the run was for. */
  readonly kind: "evidence" | "artifact" | "output";

  /** Bytes. */
  readonly size: number;

  /** 64 hex digits; also the ETag of the bytes. */
  readonly sha256: string;

  readonly content_type: string;

  /** Where its bytes are; good as long as the run is. */
  readonly url: string;

  /** When it was kept; of evidence, when the run was created. */
  readonly created_at: string;

  /** The agent that made it; null for evidence. */
  readonly producer: string | null;
};

/** A page of artifacts, evidence first in a fixed order, then oldest first. */
export type ArtifactPage = {
  readonly items: readonly Artifact[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** A package of the catalog. */
export type Blueprint = {
  readonly blueprint_id: string;

  readonly name: string;

  readonly description: string;

  readonly version: string | null;

  readonly category: string | null;

  readonly tags: readonly string[];

  readonly state: BlueprintState;

  /**
   * Whether its folder in the catalog is not what was added any more: warnings names files that have
   * changed. Runs use what was added until it is added again. Edits show within a second; files of more
   * than 64 MiB together are compared in the background, and count as unchanged until then.
   */
  readonly modified: boolean;

  /** Whether its runs have a web interface, as it is configured. */
  readonly web_ui: boolean;

  /** How many warnings the blueprint's own record has. */
  readonly warning_count: number;
};

/** A package of the catalog, with everything that is known of it. */
export type BlueprintDetail = {
  readonly blueprint_id: string;

  readonly name: string;

  readonly description: string;

  readonly version: string | null;

  readonly category: string | null;

  readonly tags: readonly string[];

  readonly state: BlueprintState;

  /**
   * Whether its folder in the catalog is not what was added any more: warnings names files that have
   * changed. Runs use what was added until it is added again. Edits show within a second; files of more
   * than 64 MiB together are compared in the background, and count as unchanged until then.
   */
  readonly modified: boolean;

  /** Whether its runs have a web interface, as it is configured. */
  readonly web_ui: boolean;

  /** How many warnings the blueprint's own record has. */
  readonly warning_count: number;

  /** Its folder in the catalog, by name; null when that has gone. */
  readonly place: string | null;

  /** JSON Schema of a run's inputs; null: anything. */
  readonly input_schema: JsonObject | null;

  /** JSON Schema of the configuration; null: anything. */
  readonly config_schema: JsonObject | null;

  /** The package's own; a run's config_overrides are laid over it. Secrets are shown as "********". */
  readonly default_configuration: JsonObject;

  /** What a machine must have before a run is accepted. */
  readonly requirements: {
    readonly commands: readonly string[];

    readonly environment: readonly string[];

    readonly platforms: readonly string[];

    readonly cpu_cores: number | null;

    readonly memory_bytes: number | null;

    readonly disk_bytes: number | null;

    /** Slots, by the pool's name. */
    readonly pools: Readonly<Record<string, number>>;

    readonly models: readonly string[];

    readonly services: readonly {
      readonly name: string;

      readonly tags: readonly string[];

      readonly node: string | null;
    }[];
  } | null;

  readonly resources: readonly {
    /** Workers find it in SVC_RESOURCES_DIR under this name. */
    readonly name: string;

    readonly title: string | null;

    readonly from: string | null;

    readonly prepare: readonly string[] | null;

    readonly timeout_seconds: number;
  }[];

  readonly models: readonly {
    readonly model_id: string;

    readonly path: string;

    readonly sha256: string | null;
  }[];

  /** Folders of the user's that a run takes, each given by its path in the configuration. */
  readonly local_inputs: readonly {
    /** Dotted path in the configuration that holds the folder's path. */
    readonly config_path: string;

    readonly payload_path: string;

    readonly runtime_path: string;

    readonly allowed_extensions: readonly string[] | null;

    readonly linked_config_paths: readonly string[];
  }[];

  /** What was prepared for it; a removal can delete it. */
  readonly owns: readonly {
    readonly kind: "package" | "resource" | "model";

    /** The package's fingerprint, or the name that the manifest declares. */
    readonly id: string;

    readonly bytes: number;

    /** Whether it is whole. */
    readonly ready: boolean;
  }[];

  readonly errors: readonly {
    /**
     * JSON Pointer into manifest.json; behind /config/default.json# into the configuration; or / and a
     * file's name. Empty for the whole.
     */
    readonly path: string;

    readonly code: string;

    /** For people; stands by itself. */
    readonly message: string;
  }[];

  readonly warnings: readonly {
    /**
     * JSON Pointer into manifest.json; behind /config/default.json# into the configuration; or / and a
     * file's name. Empty for the whole.
     */
    readonly path: string;

    readonly code: string;

    /** For people; stands by itself. */
    readonly message: string;
  }[];

  /** The latest addition or removal. */
  readonly operation_id: string | null;

  /** Jobs made from it. */
  readonly jobs: number;

  /** When it was added. */
  readonly added_at: string | null;

  readonly links: {
    readonly self: string;

    readonly additions: string;

    readonly removals: string;

    readonly validate: string;

    readonly runs: string;

    /** The latest addition or removal. */
    readonly operation: string | null;
  };
};

/** A page of blueprints, in the order of their ids. */
export type BlueprintPage = {
  readonly items: readonly Blueprint[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/**
 * available: only in the catalog. adding, removing: an operation is under way. added: runs start at
 * once. failed: errors says why its addition did. broken: its folder has mistakes, which errors lists.
 */
export type BlueprintState = "available" | "adding" | "added" | "removing" | "failed" | "broken";

/** What a launch would come to. */
export type BlueprintValidation = {
  /** Whether a launch as asked would be accepted now. */
  readonly valid: boolean;

  /** Everything that stands against it. */
  readonly errors: readonly {
    /** JSON Pointer into the request's body; of a broken blueprint into its files. May be empty. */
    readonly path: string;

    readonly code: string;

    /** For people. */
    readonly message: string;
  }[];

  readonly warnings: readonly {
    /** JSON Pointer into the request's body; of a broken blueprint into its files. May be empty. */
    readonly path: string;

    readonly code: string;

    /** For people. */
    readonly message: string;
  }[];
};

/** An uploaded package: manifest, configuration, payload. The same content has the same id. */
export type Bundle = {
  readonly bundle_id: string;

  readonly name: string;

  readonly graph_id: string;

  /** SHA-256 over the bundle's files. */
  readonly fingerprint: string;

  /** Bytes of all its files. */
  readonly size: number;

  /** When it was first uploaded. */
  readonly created_at: string;

  /** What of the package is ignored, such as unknown fields of its manifest. Not in lists. */
  readonly warnings?:
    | readonly {
        /**
         * JSON Pointer into manifest.json; behind /config/default.json# into the configuration; or / and a
         * file's name. Empty for the whole.
         */
        readonly path: string;

        readonly code: string;

        /** For people; stands by itself. */
        readonly message: string;
      }[]
    | undefined;
};

/** A page of bundles, newest first. */
export type BundlePage = {
  readonly items: readonly Bundle[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

export type CollectGarbage = {
  /** Remove nothing; tell what would go. */
  readonly dry_run?: boolean | undefined;

  /**
   * Remove blobs, bundles and leftovers even if they are most of what SVC_HOME holds; see
   * needs_confirmation.
   */
  readonly confirm?: boolean | undefined;

  /**
   * Ended runs that are older go; a fraction is one of a day. 0: none goes for its age. The program's
   * SVC_RETENTION_DAYS when absent.
   */
  readonly older_than_days?: number | undefined;

  /**
   * What ended runs may have together in histories and artifacts: those that ended first go until it is
   * no more. 0: no bound. The program's SVC_RETENTION_MAX_BYTES when absent.
   */
  readonly max_bytes?: number | undefined;
};

/** What was removed, or would be. */
export type CollectReport = {
  /** Whether all of this is still there. */
  readonly dry_run: boolean;

  /** The bound that was applied; 0: none by age. */
  readonly older_than_days: number;

  /** The bound that was applied; 0: none by size. */
  readonly max_bytes: number;

  /**
   * Ended runs of both APIs, with what they had in histories and artifacts; an artifact's content that
   * several have counts for each.
   */
  readonly runs: {
    readonly count: number;

    readonly bytes: number;
  };

  /** Contents of artifacts that no run has any more. What was stored within the last hour stays. */
  readonly blobs: {
    readonly count: number;

    readonly bytes: number;
  };

  /**
   * Contents of bundles that no bundle, job or run has any more. What lost its last user within the last
   * day stays.
   */
  readonly bundles: {
    readonly count: number;

    readonly bytes: number;
  };

  /** Files and folders in SVC_HOME that belong to nothing. */
  readonly leftovers: {
    readonly count: number;

    readonly bytes: number;
  };

  /**
   * Whether blobs, bundles and leftovers were left alone (in a dry run: would be), because they are most
   * of what SVC_HOME holds: the database may not be the one that belongs to it. `confirm` removes them.
   */
  readonly needs_confirmation: boolean;

  /** Of files: blobs, bundles and leftovers. The database uses its free pages again. */
  readonly bytes_freed: number;
};

/** One of them at least. */
export type ControlRun = {
  readonly desired_state?: DesiredState | undefined;

  /**
   * Who is granted slots first when several wait; normal, the default. A run that is passed over rises
   * by one for each minute.
   */
  readonly priority?: "low" | "normal" | "high" | undefined;
};

export type CreateDeployment = {
  /** For people. */
  readonly name: string;

  readonly source: DeploymentSource;

  /** Laid over the configuration of the source, as that of a job. */
  readonly config?: JsonObject | undefined;

  /** How many instances there are to be. */
  readonly count?: number | undefined;

  readonly strategy?: DeploymentStrategy | undefined;
};

export type CreateJob = {
  /** An uploaded bundle. */
  readonly bundle_id?: string | undefined;

  /** A catalog blueprint, in place of bundle_id. */
  readonly blueprint_id?: string | undefined;

  /** For people. */
  readonly name?: string | undefined;

  /**
   * Laid over the bundle's own. Values under keys that look like secrets are stored encrypted; {"$env":
   * "NAME"} is read from the runtime's environment at launch.
   */
  readonly resolved_configuration?: JsonObject | undefined;

  /**
   * Slots that the job is granted in its turn while others wait for them, too: jobs share a pool by
   * their weights. 1, the default. Of runs that start later.
   */
  readonly weight?: number | undefined;
};

export type CreateRun = {
  /**
   * One body for every entrypoint, in place of the manifest's initial_inputs; {} leaves those.
   * {"$entrypoints": {"id": [bodies]}} addresses entrypoints one by one.
   */
  readonly inputs?: JsonObject | undefined;

  /**
   * For jobs made from a catalog blueprint only: laid over the job's configuration. The run, and the job
   * from then on, use the blueprint's package as it is now.
   */
  readonly config_overrides?: JsonObject | undefined;

  /**
   * Who is granted slots first when several wait; normal, the default. A run that is passed over rises
   * by one for each minute.
   */
  readonly priority?: "low" | "normal" | "high" | undefined;

  /**
   * The run that this one repeats, of the same job or blueprint. What is not given of inputs and
   * config_overrides is that run's, its secrets included.
   */
  readonly rerun_of?: string | undefined;
};

export type CreateRuns = {
  readonly items: readonly unknown[];
};

export type CreateSchedule = {
  /** For people. */
  readonly name?: string | undefined;

  readonly cron?: CronRule | undefined;

  readonly delayed?: Delay | undefined;

  readonly event?: EventRule | undefined;

  readonly webhook?: WebhookSettings | undefined;

  /**
   * As in the start of a run. A value {"$event": "/payload/name"} becomes what is there in the event
   * that a run is started for, {"$schedule": "due_at"} the time that it is due at.
   */
  readonly inputs?: JsonObject | undefined;

  /**
   * Who is granted slots first when several wait; normal, the default. A run that is passed over rises
   * by one for each minute.
   */
  readonly priority?: "low" | "normal" | "high" | undefined;

  /**
   * When the run before has not ended: start none (skip, the default), start one all the same, let one
   * wait for its end, or cancel it.
   */
  readonly overlap?: "skip" | "allow" | "queue_one" | "cancel_previous" | undefined;

  /**
   * Times at which nothing was running, or that are more than a minute late: start no run for them, one
   * for the last of them (run_once, the default), or one for each.
   */
  readonly missed?: "skip" | "run_once" | "run_all" | undefined;

  /** Most missed times, the latest ones, that run_all makes up for. Default: 100. */
  readonly catchup_limit?: number | undefined;

  /** No run is started behind it. */
  readonly until?: string | null | undefined;

  /** After so many the schedule is completed. */
  readonly max_runs?: number | null | undefined;

  /** Pauses the schedule when so many runs in a row have failed or were refused. */
  readonly pause_after_failures?: number | null | undefined;

  /** As in the start of a run: for jobs made from a catalog blueprint only. */
  readonly config_overrides?: JsonObject | undefined;

  /** Follows from which of cron, delayed and event is given. */
  readonly kind?: "cron" | "delayed" | "event" | undefined;

  /** Whose runs are started: exactly one of them. */
  readonly target?:
    | {
        /** A job that is there. */
        readonly job_id?: string | undefined;

        /** A catalog blueprint: a job is made of it with the schedule. */
        readonly blueprint_id?: string | undefined;
      }
    | undefined;

  /** The same as target.job_id. */
  readonly job_id?: string | undefined;

  /** The same as target.blueprint_id. */
  readonly blueprint_id?: string | undefined;
};

/** When runs are started, again and again. */
export type CronRule = {
  /**
   * Five fields (minute, hour, day, month, weekday), or six with seconds in front; or @hourly, @daily,
   * @weekly, @monthly, @yearly. A time is due when one of them matches.
   */
  readonly expressions?: readonly string[] | undefined;

  /**
   * An IANA name. Default: UTC. A time that does not exist when clocks are put forward is due at the
   * first moment that does; one that comes twice is due once.
   */
  readonly timezone?: string | undefined;

  /** Each start is put off by up to so long. Default: 0. */
  readonly jitter_seconds?: number | undefined;
};

export type DeadLetter = {
  readonly dead_letter_id: string;

  readonly run_id: string;

  /** Whom the message was for. */
  readonly agent_id: string | null;

  /** The whole envelope: type, from, to, body and the rest. */
  readonly message: JsonObject;

  /** Why nobody has it. */
  readonly reason: "ttl_expired" | "target_gone" | "mailbox_full" | "processing_failed";

  /** How often its processing was tried. */
  readonly attempts: number;

  /** Whether it was sent again. */
  readonly status: "open" | "retried";

  /** When it was given up. */
  readonly created_at: string;

  /** When it was sent again; null while it is open. */
  readonly retried_at: string | null;

  /** The other body with which it was sent again; null: it was sent as it was, or not yet. */
  readonly change: {
    /** Who has changed it: anonymous, or token for a caller with one. */
    readonly principal: string;

    /** The body with which it was sent again. */
    readonly body: unknown;
  } | null;
};

/** A page of messages that were not processed, newest first. */
export type DeadLetterPage = {
  readonly items: readonly DeadLetter[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** When the one run is started. */
export type Delay = {
  /** When; or delay_seconds. */
  readonly at?: string | undefined;

  /** From now on. */
  readonly delay_seconds?: number | undefined;
};

/** So many instances of a service graph, which are kept running and replaced without an outage. */
export type Deployment = {
  readonly deployment_id: string;

  readonly name: string;

  /** Of the rollout. In the last three it is over; instances that end are replaced nonetheless. */
  readonly status:
    | "pending"
    | "running"
    | "paused"
    | "awaiting_promotion"
    | "succeeded"
    | "failed"
    | "rolled_back";

  readonly source: {
    readonly bundle_id?: string | undefined;

    readonly blueprint_id?: string | undefined;
  };

  /** Of the version; secrets are masked. */
  readonly config: JsonObject;

  /** The version that all instances are to be of. */
  readonly version: number;

  /** The one that all instances were of last; null: none yet. */
  readonly stable_version: number | null;

  readonly is_rolling_back: boolean;

  readonly count: number;

  readonly strategy: {
    readonly kind: "rolling" | "canary" | "blue_green";

    readonly max_parallel: number;

    readonly canaries: number;

    readonly min_healthy_seconds: number;

    readonly healthy_deadline_seconds: number;

    readonly progress_deadline_seconds: number;

    readonly auto_promote: boolean;

    readonly auto_rollback: boolean;

    readonly drain_seconds: number;
  };

  /** How many instances are to serve. */
  readonly desired: number;

  /** How many serve and are healthy, of whatever version. */
  readonly healthy: number;

  /** Until they have ended. */
  readonly instances: readonly {
    /** Its number among all that were ever started. */
    readonly instance: number;

    readonly run_id: string;

    readonly version: number;

    /** Only one that serves is found by the names of its services. */
    readonly phase: "starting" | "serving" | "draining" | "stopping";

    /** That of its services; without any, passing while its run is running. */
    readonly health: "passing" | "critical" | "unknown";

    /** Where its services are; null while that is not known. */
    readonly node: string | null;

    /** When its run was started. */
    readonly started_at: string;
  }[];

  /** How many instances are on each node, as far as that is known. */
  readonly placement: Readonly<Record<string, number>>;

  /** Oldest first; the last 20. */
  readonly versions: readonly {
    readonly version: number;

    readonly source: {
      readonly bundle_id?: string | undefined;

      readonly blueprint_id?: string | undefined;
    };

    /** Secrets are masked. */
    readonly config: JsonObject;

    /** Whose runs its instances are. */
    readonly job_id: string;

    /** Whether all instances were of it once. */
    readonly has_succeeded: boolean;

    /** When it was deployed. */
    readonly created_at: string;
  }[];

  readonly last_failure: {
    /** When it was noticed. */
    readonly at: string;

    readonly version: number;

    /** For people. */
    readonly reason: string;
  } | null;

  /** As Last-Event-ID of the event stream, it follows what happens from now on. */
  readonly last_event_id: number;

  readonly revision: number;

  /** When it was made. */
  readonly created_at: string;

  /** Last change of anything that is shown. */
  readonly updated_at: string;
};

/** A page of deployments, newest first. */
export type DeploymentPage = {
  readonly items: readonly Deployment[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** What each instance is made of: exactly one of them, with "type": "service" in its manifest. */
export type DeploymentSource = {
  /** An uploaded bundle. */
  readonly bundle_id?: string | undefined;

  /** A blueprint of the catalog. */
  readonly blueprint_id?: string | undefined;
};

/** How instances of one version are replaced by those of another. */
export type DeploymentStrategy = {
  /**
   * rolling (the default): one after the other. canary: some instances first. blue_green: a whole second
   * set first.
   */
  readonly kind?: "rolling" | "canary" | "blue_green" | undefined;

  /** Instances beyond count at a time. Default: 1. */
  readonly max_parallel?: number | undefined;

  /** Instances of the new version that serve first. Default: 1. */
  readonly canaries?: number | undefined;

  /** How long an instance is healthy before it serves. Default: 10. */
  readonly min_healthy_seconds?: number | undefined;

  /** An instance that is not healthy by then fails the rollout. Default: 300. */
  readonly healthy_deadline_seconds?: number | undefined;

  /** So long without an instance more that is healthy, and the rollout fails. Default: 600. */
  readonly progress_deadline_seconds?: number | undefined;

  /** Whether it needs no promotion behind the canaries or the second set. Default: false. */
  readonly auto_promote?: boolean | undefined;

  /** Whether a rollout that fails goes back to the version before. Default: true. */
  readonly auto_rollback?: boolean | undefined;

  /** How long an old instance goes on when it is not found by its name any more. Default: 10. */
  readonly drain_seconds?: number | undefined;
};

export type DesiredState = "paused" | "running" | "cancelled";

/** What was found when the machine was looked at. */
export type Doctor = {
  /** The worst of its checks. */
  readonly status: "ok" | "warn" | "fail";

  /** When the checks ended; they are made again after a few seconds. */
  readonly checked_at: string;

  readonly checks: readonly {
    readonly name: string;

    readonly status: "ok" | "warn" | "fail";

    /** What was found. */
    readonly text: string;

    /** What to do about it. */
    readonly fix?: string | undefined;
  }[];
};

export type DrainNode = {
  /**
   * How long running attempts may go on; then they are ended, and made again on other nodes. Asked
   * again, it counts from then.
   */
  readonly deadline_seconds?: number | undefined;

  /** Whether jobs of type service stay until no other job is left. */
  readonly services_last?: boolean | undefined;
};

export type EmitEvent = {
  /** What has happened: lower case, digits, dots, underscores and hyphens. */
  readonly type: string;

  /** Any JSON of 256 KiB at most. */
  readonly payload?: unknown | undefined;

  /** Where it has happened. */
  readonly source?: string | undefined;

  /**
   * The same event_id again has no effect, and is given the first answer, for seven days. Without it the
   * event gets one.
   */
  readonly event_id?: string | undefined;
};

export type EventFilter = {
  /** A JSON Pointer from the event: /type, /source, /payload and what is in it, /event_id, /received_at. */
  readonly path: string;

  /**
   * eq and ne compare any JSON; in: one of a list; prefix: of a text; contains: a part of a text, or an
   * item of a list; exists: true or false; gt, gte, lt and lte compare numbers, or texts. What is not
   * there passes ne and exists: false only.
   */
  readonly op: "eq" | "ne" | "in" | "prefix" | "contains" | "exists" | "gt" | "gte" | "lt" | "lte";

  /** What is compared with. Of exists: true without it. */
  readonly value?: unknown | undefined;
};

/** What a schedule has made of an event. */
export type EventMatch = {
  readonly schedule_id: string;

  readonly run_id?: string | undefined;

  /**
   * Why no run was started at once. debounced, batched and queued: one may be started later, and run_id
   * is its id then.
   */
  readonly skipped?:
    | "debounced"
    | "throttled"
    | "batched"
    | "overlap"
    | "paused"
    | "queued"
    | "refused"
    | "too_deep"
    | undefined;

  /** Why there is no run, and will be none. */
  readonly reason?: string | undefined;
};

/**
 * What events start runs. At most one of debounce_seconds, throttle_seconds and batch. A run of a
 * batch is given all of its events: templates begin at {events: […]}.
 */
export type EventRule = {
  /** Of the events. */
  readonly type?: string | undefined;

  /** All of them must let an event pass. */
  readonly filters?: readonly EventFilter[] | undefined;

  /** A run is started for the last of several events, once none has come for so long. */
  readonly debounce_seconds?: number | null | undefined;

  /** After the start of a run, events start none for so long. */
  readonly throttle_seconds?: number | null | undefined;

  readonly batch?:
    | {
        /** A run starts when there are so many. */
        readonly max: number;

        /** And at most so long after the first. */
        readonly seconds: number;
      }
    | null
    | undefined;
};

/** Executor pools by name. */
export type ExecutorPools = Readonly<
  Record<
    string,
    {
      /** Slots there are. */
      readonly capacity: number;

      readonly available: number;

      readonly in_use: number;

      /** Requests that wait for slots. */
      readonly queued: number;

      /** Leases that are held. */
      readonly active: number;
    }
  >
>;

export type FailDeployment = {
  /** Whether it goes back to the version before. Default: false; it stays as it is. */
  readonly rollback?: boolean | undefined;
};

export type GridAgent = {
  readonly agent_id: string;

  readonly agent_type: string;

  readonly role: string | null;

  /** One for each of runs, in their order; null where that run's graph has no such agent. */
  readonly states: readonly (
    | "pending"
    | "ready"
    | "running"
    | "waiting"
    | "paused"
    | "done"
    | "failed"
    | "cancelled"
    | "skipped"
    | "not_reached"
    | null
  )[];
};

/** Whether the gateway lives, and how it is set up. */
export type Health = {
  /** degraded: nothing new is accepted at the moment. */
  readonly status: "ok" | "degraded";

  /** Of the program. */
  readonly version: string;

  readonly api_contract: "svc.rest.v1";

  /** Since the start. */
  readonly uptime_seconds: number;

  /** The settings that a client may want to know; no secret, no path. */
  readonly configuration: {
    readonly environment: "dev" | "test" | "prod";

    /** token: every other request needs the API token. */
    readonly auth: "token" | "none";

    readonly store: "sqlite" | "postgresql";

    /** Slots by pool. */
    readonly executor_pools: Readonly<Record<string, number>>;

    /** Of a JSON body. */
    readonly body_max_bytes: number;

    /** Of an uploaded zip. */
    readonly bundle_max_bytes: number;

    /** 0: no limit. */
    readonly requests_per_minute_max: number;

    /** How long ended runs are kept; 0: whatever their age. */
    readonly retention_days: number;

    /** What ended runs may have together in histories and artifacts; 0: no bound. */
    readonly retention_max_bytes: number;
  };

  readonly checks: {
    /** failing: what is done cannot be committed. */
    readonly store: "ok" | "failing";

    /** stopping: the program shuts down. */
    readonly runtime: "ok" | "stopping";
  };

  /** Why nothing new is accepted at the moment; absent while all is well. */
  readonly detail?: string | undefined;
};

/** A question of a worker to people. */
export type HumanRequest = {
  /** Unique in the run. */
  readonly request_id: string;

  readonly run_id: string;

  /** Whose worker asks. */
  readonly agent_id: string;

  /** The question, for people. */
  readonly prompt: string;

  /** The decisions that are taken; empty: any. */
  readonly allowed_decisions: readonly string[];

  /**
   * The JSON Schema that the data of an answer is held to; without data, null is. Null: any data is
   * taken.
   */
  readonly data_schema: unknown;

  /** pending: nobody has answered. timed_out: the time was over, and the default action was taken. */
  readonly status: "pending" | "answered" | "timed_out";

  /** The decision when the time is over; null: the word timed_out. */
  readonly default_action: string | null;

  /** When it was asked. */
  readonly created_at: string;

  /** When its time is over; null: it waits for ever. */
  readonly expires_at: string | null;

  readonly response: {
    /** What was decided. */
    readonly decision: string;

    /** In the person's own words. */
    readonly comment: string | null;

    /** Any JSON; null without any. */
    readonly data: unknown;

    /** Who answered: anonymous, or token for a caller with one; null after a timeout. */
    readonly principal: string | null;

    /** When it was answered, or its time was over. */
    readonly responded_at: string;
  } | null;
};

/** A page of requests to people, oldest first. */
export type HumanRequestPage = {
  readonly items: readonly HumanRequest[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

export type InstallModel = {
  /** Fetches it also when it is there, and in place of that. */
  readonly force?: boolean | undefined;
};

/** A durable definition of work. */
export type Job = {
  readonly job_id: string;

  readonly name: string;

  /**
   * preparing: its blueprint is being added. failed_preparation: that failed, and a later addition may
   * fix it.
   */
  readonly status: "ready" | "preparing" | "failed_preparation";

  readonly source:
    | {
        readonly bundle_id: string;
      }
    | {
        readonly blueprint_id: string;
      };

  readonly graph_id: string;

  /** Secrets are shown as "********". */
  readonly resolved_configuration: JsonObject;

  /** Slots that the job is granted in its turn while others wait for them, too. */
  readonly weight: number;

  /**
   * What its package and its configuration switch on. svc.response: it can be asked at links.mcp;
   * svc.collaboration: the same without ask_job.
   */
  readonly extensions: readonly string[];

  /** From 1; each change adds one. The ETag is made of it. */
  readonly revision: number;

  /** When the job was created. */
  readonly created_at: string;

  /** Last change of the definition. */
  readonly updated_at: string;

  readonly latest_run: RunSummary | null;

  /** Runs that have not ended. */
  readonly active_runs: number;

  /** Where to look next: self, runs, workflow_progress, and mcp where the job can be asked. */
  readonly links: Readonly<Record<string, string>>;
};

export type JobControl = {
  readonly job_id: string;

  /** Every run that had not ended, oldest first, and what it comes to by this request. */
  readonly runs: readonly {
    readonly run_id: string;

    readonly status: RunStatus;
  }[];
};

/**
 * A job with the summary of its latest run; with view=full also its manifest, graph, recent runs and
 * events, and services.
 */
export type JobDetail = {
  readonly job_id: string;

  readonly name: string;

  /**
   * preparing: its blueprint is being added. failed_preparation: that failed, and a later addition may
   * fix it.
   */
  readonly status: "ready" | "preparing" | "failed_preparation";

  readonly source:
    | {
        readonly bundle_id: string;
      }
    | {
        readonly blueprint_id: string;
      };

  readonly graph_id: string;

  /** Secrets are shown as "********". */
  readonly resolved_configuration: JsonObject;

  /** Slots that the job is granted in its turn while others wait for them, too. */
  readonly weight: number;

  /**
   * What its package and its configuration switch on. svc.response: it can be asked at links.mcp;
   * svc.collaboration: the same without ask_job.
   */
  readonly extensions: readonly string[];

  /** From 1; each change adds one. The ETag is made of it. */
  readonly revision: number;

  /** When the job was created. */
  readonly created_at: string;

  /** Last change of the definition. */
  readonly updated_at: string;

  readonly latest_run: RunSummary | null;

  /** Runs that have not ended. */
  readonly active_runs: number;

  /** Where to look next: self, runs, workflow_progress, and mcp where the job can be asked. */
  readonly links: Readonly<Record<string, string>>;

  /** view=full: the bundle's manifest. */
  readonly manifest?: JsonObject | undefined;

  readonly graph?:
    | {
        readonly nodes: readonly {
          readonly node_id: string;

          readonly agent_type: string;

          readonly role: string | null;
        }[];

        readonly edges: readonly {
          readonly edge_id: string | null;

          readonly from_node: string;

          readonly to_node: string;

          /** Null: every message. */
          readonly message_type: string | null;
        }[];

        readonly entrypoints: readonly string[];
      }
    | undefined;

  readonly recent_runs?: readonly RunSummary[] | undefined;

  /** view=full: of the latest run, newest first. */
  readonly recent_events?: readonly JsonObject[] | undefined;

  /** view=full. What open runs offer is at GET /services. */
  readonly services?: readonly JsonObject[] | undefined;

  /** svc.error.v1; null unless the latest run failed. */
  readonly failure: JsonObject | null;

  /** For people: failure.desc, or why the run is queued; else null. */
  readonly reason: string | null;

  /** For people: failure.desc, or why the run is queued; else null. */
  readonly status_reason: string | null;

  /** W3C trace id of the latest run. */
  readonly trace_id: string | null;

  readonly observability_summary: ObservabilitySummary | null;
};

/** A page of a job's agents, in the order of its graph, with what they are in its newest runs. */
export type JobGrid = {
  readonly items: readonly GridAgent[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;

  /** Newest first; the same ones on all pages of a walk. */
  readonly runs: readonly RunSummary[];
};

/** A page of jobs, newest first. */
export type JobPage = {
  readonly items: readonly Job[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

export type JoinCluster = {
  /** The join_token that the node was added with. */
  readonly token: string;

  /** SVC_DATABASE_URL of the cluster, by which its nodes are found; or give cluster_address. */
  readonly database_url?: string | undefined;

  /** host:port of a node (`address` in GET /nodes), which tells the database to the program. */
  readonly cluster_address?: string | undefined;

  /** A name for people: visible ASCII characters. */
  readonly name?: string | undefined;

  /** host:port at which other nodes are to reach this one, as SVC_NODE_ADDRESS. */
  readonly address?: string | undefined;
};

export type LaunchBlueprint = {
  /**
   * One body for every entrypoint, in place of the manifest's initial_inputs; {} leaves those.
   * {"$entrypoints": {"id": [bodies]}} addresses entrypoints one by one.
   */
  readonly inputs?: JsonObject | undefined;

  /** Laid over the blueprint's configuration, for this run. */
  readonly config_overrides?: JsonObject | undefined;

  /**
   * Who is granted slots first when several wait; normal, the default. A run that is passed over rises
   * by one for each minute.
   */
  readonly priority?: "low" | "normal" | "high" | undefined;

  /**
   * The run that this one repeats, of the same job or blueprint. What is not given of inputs and
   * config_overrides is that run's, its secrets included.
   */
  readonly rerun_of?: string | undefined;

  /** Of the job; the blueprint's when absent. */
  readonly name?: string | undefined;
};

/** A run that was accepted, of a job that was made for it. */
export type LaunchedBlueprint = {
  readonly run_id: string;

  /** The job that was made for the run. */
  readonly job_id: string;

  readonly status: "pending";

  /** That the blueprint's folder in the catalog is not what was added and runs now. */
  readonly warnings: readonly {
    /** JSON Pointer into the request's body; of a broken blueprint into its files. May be empty. */
    readonly path: string;

    readonly code: string;

    /** For people. */
    readonly message: string;
  }[];
};

export type LeaveCluster = {
  /**
   * How long running attempts may go on; then they are ended, and made again on other nodes. Asked
   * again, it counts from then.
   */
  readonly deadline_seconds?: number | undefined;
};

/** As the OpenAI protocol has it. */
export type LlmAnswer = JsonObject;

/** An error of the OpenAI protocol. */
export type LlmError = {
  readonly error: {
    /** What happened and what to do next. */
    readonly message: string;

    readonly type: string;

    /** The member of the request that is wrong. */
    readonly param: string | null;

    readonly code: string | null;
  };
};

export type LlmModel = {
  /** The model_id. */
  readonly id: string;

  readonly object: "model";

  /** When it was served first, in seconds since 1970. */
  readonly created: number;

  readonly owned_by: "troupe";
};

export type LlmModelList = {
  readonly object: "list";

  readonly data: readonly LlmModel[];
};

/** As the OpenAI protocol has it. */
export type LlmRequest = JsonObject;

/** How many records there are over time, as far as they are counted. */
export type LogHistogram = {
  /**
   * How long each bucket is, in milliseconds: a whole multiple of every shorter length that an answer
   * can have, so counts of shorter buckets fit into longer ones.
   */
  readonly bucket_ms: number;

  /** Of the first event that belongs to the times asked for; null without any. */
  readonly from: string | null;

  /** Of the last one by now. */
  readonly to: string | null;

  /** In the order of time; those without a record are left out. */
  readonly buckets: readonly {
    /** A whole multiple of bucket_ms since 1970. */
    readonly start: string;

    /** Records of each level. */
    readonly counts: {
      readonly trace: number;

      readonly debug: number;

      readonly info: number;

      readonly warn: number;

      readonly error: number;

      readonly fatal: number;
    };
  }[];

  /** Counts on; null when all is counted. Add what comes to the buckets of the same start. */
  readonly next_page_token: string | null;

  /** The event up to which this page and those before it have counted. */
  readonly last_event_id: number;
};

/**
 * A page of log records, in the order asked for; it may be short, or empty, and still not be the last
 * one.
 */
export type LogPage = {
  readonly items: readonly LogRecord[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;

  /**
   * The event up to which this page and those before it have seen the log. With order=desc, and on the
   * last page, a stream that is opened with it as Last-Event-ID goes on without a gap and without
   * repetition.
   */
  readonly last_event_id: number;
};

export type LogRecord = {
  /** Of its event: its place in the run's history, from 1. */
  readonly id: number;

  /** When it was logged. */
  readonly ts: string;

  /** From the least to the most urgent. */
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal";

  readonly run_id: string;

  /** Null for what concerns the whole run. */
  readonly agent_id: string | null;

  /** Of the task, from 1. */
  readonly attempt: number | null;

  /** worker: reported by the worker as an event. runtime: logged by the runtime itself. */
  readonly stream: "stdout" | "stderr" | "worker" | "runtime";

  readonly message: string;

  /** What was logged beside the message. */
  readonly fields: JsonObject;

  /** W3C trace id. */
  readonly trace_id: string;

  /** W3C span id. */
  readonly span_id: string;
};

/** As the protocol has it. */
export type McpAnswer = JsonObject;

/** A message of the protocol, JSON-RPC 2.0, with its id and params. */
export type McpMessage = {
  readonly jsonrpc: "2.0";

  readonly method: string;
};

/** What the process is doing that answers; cluster is about all nodes. */
export type Metrics = {
  readonly process: {
    /** Since the start. */
    readonly uptime_seconds: number;

    /** Resident memory. */
    readonly rss_bytes: number;

    readonly heap_used_bytes: number;

    readonly heap_total_bytes: number;

    /** Buffers outside the heap. */
    readonly external_bytes: number;

    readonly cpu_user_seconds: number;

    readonly cpu_system_seconds: number;

    /** How long the event loop kept callers waiting, over the last minutes. */
    readonly event_loop_lag_ms: {
      readonly p50: number;

      readonly p99: number;

      readonly max: number;
    };
  };

  readonly runtime: {
    /** Whether new work is accepted. */
    readonly available: boolean;

    readonly open_jobs: number;

    readonly launches_waiting: number;

    /** In the mailboxes of all open runs. */
    readonly messages_waiting: number;

    /** What workers asked people, without an answer. */
    readonly human_requests_waiting: number;

    /** Readers of event streams. */
    readonly stream_readers: number;

    /** Requests that wait for an end (`Prefer: wait`). */
    readonly waiting_requests: number;

    /** Since the process started. */
    readonly runs_started: number;

    readonly runs_ended: {
      readonly completed: number;

      readonly failed: number;

      readonly cancelled: number;
    };

    readonly executor_pools: ExecutorPools;
  };

  /**
   * All nodes that are neither lost nor left, together; every node shows the same. Null while the store
   * cannot be read.
   */
  readonly cluster: {
    /** Nodes by status: ready, draining, maintenance, lost, left. */
    readonly nodes: Readonly<Record<string, number>>;

    readonly open_jobs: number;

    readonly tasks_running: number;

    readonly executor_pools: ExecutorPools;
  } | null;

  readonly http: {
    /** Answers given since the start, by class of status: 1xx to 5xx. */
    readonly requests: Readonly<Record<string, number>>;

    /** Open at this moment. */
    readonly connections: number;

    /** How long answers took; event streams and requests that wait are left out. */
    readonly duration_ms: {
      readonly count: number;

      readonly sum: number;

      /** How many took no longer than `le`. */
      readonly buckets: readonly {
        readonly le: number;

        readonly count: number;
      }[];
    };
  };
};

/** A model that was registered. */
export type Model = {
  /** 1 to 200 characters without control characters; in paths percent-encoded. */
  readonly model_id: string;

  /** For people. */
  readonly name: string;

  /** Such as qwen3. */
  readonly family: string | null;

  /** Where it comes from; secrets are masked. */
  readonly source: JsonObject;

  /** Of the content that was installed last, else as declared. */
  readonly sha256: string | null;

  /** Bytes; null before it was installed. */
  readonly size: number | null;

  /** gguf, safetensors, or what a server says. */
  readonly format: string | null;

  /** Such as apache-2.0. */
  readonly license: string | null;

  /** How many numbers it has. */
  readonly parameters: number | null;

  /** Such as Q4_K_M. */
  readonly quantisation: string | null;

  /** Tokens that it was made for. */
  readonly context: number | null;

  readonly requirements: {
    /** To answer with. */
    readonly memory_bytes?: number | undefined;

    /** To be installed. */
    readonly disk_bytes?: number | undefined;
  } | null;

  /** What the content says of itself; null before it was installed. */
  readonly details: {
    readonly architecture: string | null;

    /** How many numbers it has. */
    readonly parameters: number | null;

    /** Such as Q4_K_M. */
    readonly quantisation: string | null;

    /** Tokens that it was made for. */
    readonly context: number | null;

    readonly tokenizer: string | null;

    /** Tokens. */
    readonly vocabulary: number | null;

    /** Whether it has one. */
    readonly chat_template: boolean | null;
  } | null;

  /** Over all nodes. An endpoint stays registered: it is served as it is. */
  readonly state: "registered" | "installing" | "installed" | "failed";

  /** The blueprints that brought it. */
  readonly used_by: readonly string[];

  readonly installations: readonly ModelInstallation[];

  readonly revision: number;

  /** When it was registered. */
  readonly created_at: string;

  /** When it last changed. */
  readonly updated_at: string;
};

/** A model on one node. */
export type ModelInstallation = {
  readonly installation_id: string;

  /** 1 to 200 characters without control characters; in paths percent-encoded. */
  readonly model_id: string;

  /** The node that it is on. */
  readonly node_id: string;

  /** What was installed before stays usable while it is updated. */
  readonly state: "installing" | "installed" | "failed";

  /** The operation that has changed it last. */
  readonly operation_id: string;

  /** Of the content; 0 while there is none. */
  readonly bytes: number;

  /** Of the content in SVC_HOME; null while there is none, and of a model that a server has. */
  readonly sha256: string | null;

  /** Whether it stays as it is: it is not updated, and removed only by force. */
  readonly pinned: boolean;

  readonly error: {
    readonly code: string;

    /** What happened and what to do next, for people. */
    readonly detail: string;

    readonly retryable: boolean;
  } | null;

  readonly revision: number;

  /** When it was first asked for. */
  readonly created_at: string;

  /** When it last changed. */
  readonly updated_at: string;
};

/** A page of installations of a model, one per node. */
export type ModelInstallationPage = {
  readonly items: readonly ModelInstallation[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** A page of models, by their ids. */
export type ModelPage = {
  readonly items: readonly Model[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** How a model is served. */
export type ModelServing = {
  readonly model_id: string;

  /** Whether requests for it are answered. */
  readonly served: boolean;

  /** What clients of the OpenAI protocol are given as their base URL. */
  readonly base_url: string | null;

  readonly state: "unloaded" | "loading" | "ready" | null;

  /** As it was set; null: chosen by the model. */
  readonly context: number | null;

  /** As it was set; null: chosen by the model. */
  readonly concurrency: number | null;

  readonly queue: number;

  readonly idle_unload_seconds: number;

  readonly embeddings: boolean;

  /** Requests that are being answered by this node. */
  readonly running: number;

  /** Requests that wait for their turn at this node. */
  readonly waiting: number;

  /** Since when it is served. */
  readonly created_at: string | null;
};

/** What a look at a model has found. */
export type ModelValidation = {
  /** Whether it can be used on this machine. */
  readonly valid: boolean;

  /** In words: what it is, what it needs, and whether that is here. */
  readonly verdict: string;

  readonly format: string | null;

  readonly architecture: string | null;

  readonly parameters: number | null;

  readonly quantisation: string | null;

  /** Tokens that it was made for. */
  readonly context: number | null;

  readonly tokenizer: string | null;

  readonly chat_template: boolean | null;

  readonly memory: {
    /** Tokens that are kept. */
    readonly context: number | null;

    readonly weight_bytes: number;

    readonly cache_bytes: number;

    readonly working_bytes: number;

    /** All together, an estimate. */
    readonly bytes: number;

    /** Of this machine. */
    readonly total_bytes: number;

    /** Of this machine, now. */
    readonly free_bytes: number;
  } | null;

  readonly fit: "fits" | "fits_when_free" | "too_large" | null;

  readonly warnings: readonly string[];
};

export type NewSession = {
  /** link: for the console, good once within a minute. share: for one run. */
  readonly kind: "link" | "share";

  /** The run that a share shows. */
  readonly run_id?: string | undefined;

  /** How long a share is good. */
  readonly days?: number | undefined;
};

/** A program with its machine. Several share a database as a cluster. */
export type Node = {
  /** Kept in its SVC_HOME. */
  readonly node_id: string;

  /** SVC_NODE_NAME, else the machine's name. */
  readonly name: string;

  /** host:port at which other nodes reach it; null: there can be no other nodes. */
  readonly address: string | null;

  /** Of its program. */
  readonly version: string;

  /**
   * ready: it takes work. draining: it finishes its work, or is shutting down. lost: it has not renewed
   * its lease, so others take its jobs over. left: it has ended.
   */
  readonly status: "ready" | "draining" | "maintenance" | "lost" | "left";

  /** SVC_NODE_LABELS. */
  readonly labels: Readonly<Record<string, string>>;

  readonly pools: ExecutorPools;

  /** What its machine has. */
  readonly totals: JsonObject;

  /** Slots in use, by pool. */
  readonly reserved: Readonly<Record<string, number>>;

  /** Runs that it executes, and that have not ended. */
  readonly jobs_owned: number;

  /** Attempts that run on it. */
  readonly tasks_running: number;

  /** When it joined last. */
  readonly started_at: string;

  /** Its last heartbeat: another node is shown as of that time. */
  readonly heartbeat_at: string;

  /** Whether this node answers. */
  readonly self: boolean;

  /**
   * The ids of the nodes that it had connections to at its last heartbeat; connections that are not used
   * are closed.
   */
  readonly connected_nodes: readonly string[];
};

/**
 * How far a node is with giving its work away, as it said with its last heartbeat: a second ago at
 * most while it is drained.
 */
export type NodeDrain = {
  readonly node_id: string;

  /** draining and maintenance: it takes no work, and its jobs go to other nodes. */
  readonly state: "ready" | "draining" | "maintenance" | "lost" | "left";

  /** Jobs that are still there. */
  readonly jobs_left: number;

  /** Attempts that run there, those of other nodes' jobs included. */
  readonly tasks_left: number;

  /** Of the jobs those of type service. */
  readonly services_left: number;

  /** Jobs that have gone to other nodes. */
  readonly moved: number;

  /** When attempts that still run are ended; null: it is not drained. */
  readonly deadline_at: string | null;

  /** Why it is in maintenance. */
  readonly reason: string | null;
};

/** A page of nodes, by name. */
export type NodePage = {
  readonly items: readonly Node[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** What happened in a run, in numbers, and where to read on. */
export type ObservabilitySummary = {
  readonly schema_version: "svc.observability_summary.v1";

  readonly run_id: string;

  readonly status: RunStatus;

  /** From its start to its end, or to now; null for a run that never started. */
  readonly duration_ms: number | null;

  /** W3C trace id. */
  readonly trace_id: string;

  readonly counts: {
    /** Of its history. */
    readonly events: number;

    /** Records of the log view. */
    readonly logs: number;

    /** Events that carry a failure, attempts that were made again included. */
    readonly errors: number;

    /** Log records of level warn. */
    readonly warnings: number;

    /** Records of the timeline. */
    readonly timeline_records: number;

    /** Files that its workers left. */
    readonly artifacts: number;
  };

  /** How many agents ended how; only of a run that has ended. */
  readonly agents?:
    | {
        /** They ended well. */
        readonly done: number;

        readonly failed: number;

        /** At work, or with messages to read, when the run ended. */
        readonly cancelled: number;

        /** The run ended before anything came to them. */
        readonly skipped: number;

        /** No message ever reached them, though the run was completed. */
        readonly not_reached: number;
      }
    | undefined;

  /** What a completed run lacks, with names; empty for one that is whole. */
  readonly warnings: readonly {
    readonly code: "agents_not_reached" | "outputs_missing";

    readonly message: string;
  }[];

  /** Attempts that were made again. */
  readonly retry_count: number;

  /** Whose failure failed the run; null where none did. */
  readonly failed_agent_id: string | null;

  /** The node of the graph, by its id. */
  readonly failed_step_id: string | null;

  /** svc.error.v1; null unless the run failed. */
  readonly failure: JsonObject | null;

  /** Only of a run with such commands. */
  readonly resources?:
    | {
        /**
         * By what commands were kept within the resources of their nodes: control groups of version 2 or 1, a
         * watch of their memory with a limit of each process (prlimit), or nothing.
         */
        readonly enforcement: "none" | "prlimit" | "cgroup1" | "cgroup2";
      }
    | undefined;

  readonly resource_peaks: {
    /** CPU time of all its commands together, as the operating system tells. */
    readonly cpu_seconds: number;

    /** The most memory that one command held; null when the system told of none. */
    readonly max_rss_bytes: number | null;

    /** Of the files that its workers left. */
    readonly disk_bytes: number;
  };

  /** What its workers reported with metric events. */
  readonly tokens: {
    /** Given to models. */
    readonly input: number;

    /** Made by models. */
    readonly output: number;

    /** Both. */
    readonly total: number;
  };

  /** The views of its history as files, and its outputs: at most 20, primary ones first. */
  readonly artifact_links: readonly {
    readonly artifact_id: string;

    readonly url: string;
  }[];
};

/** Long-running work, which continues after the request that started it. */
export type Operation = {
  readonly operation_id: string;

  /** What it does. */
  readonly kind:
    | "blueprint_addition"
    | "blueprint_removal"
    | "node_removal"
    | "node_leave"
    | "node_join"
    | "model_installation"
    | "model_update"
    | "model_removal"
    | "model_serving";

  /** The id of the blueprint or of the node; of a model its id behind `model:`. */
  readonly target: string;

  /** Whether it changes nothing and only tells what it would do. */
  readonly dry_run: boolean;

  readonly status: OperationStatus;

  readonly progress: {
    readonly percent: number;

    /** What is being done, for people. */
    readonly label: string;

    /** The step under way; null before the first. */
    readonly step: string | null;

    readonly steps: readonly {
      readonly name: string;

      /** For people. */
      readonly label: string;

      /** skipped: there was nothing to do. */
      readonly status: "pending" | "running" | "completed" | "failed" | "skipped";
    }[];
  };

  /**
   * What it has come to. Of an addition blueprint_id, version, fingerprint and size; of a removal
   * removed, or preview after a dry run: {resources: [{kind, id, bytes, action}], jobs_affected,
   * bytes_freed}. Of the kinds about nodes node_id and name. Of an installation or update of a model
   * model_id, node_id, sha256 and size; of a removal as of a blueprint's, with used_by. Null until it
   * has completed.
   */
  readonly result: JsonObject | null;

  readonly error: {
    /** Stable, for programs. */
    readonly code:
      | "blueprint_not_found"
      | "blueprint_broken"
      | "blueprint_in_use"
      | "requirements_not_met"
      | "resource_failed"
      | "model_failed"
      | "model_in_use"
      | "configuration_unreadable"
      | "node_stays"
      | "join_failed"
      | "join_interrupted"
      | "disk_full"
      | "internal";

    /** What happened and what to do next, for people. */
    readonly detail: string;

    /** Whether the same request may succeed when it is made again, with a new Idempotency-Key. */
    readonly retryable: boolean;
  } | null;

  /** When it was asked for. */
  readonly created_at: string;

  /** When it last changed. */
  readonly updated_at: string;

  /** When it ended; null while it goes on. */
  readonly finished_at: string | null;
};

/** A page of operations, newest first. */
export type OperationPage = {
  readonly items: readonly Operation[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** The last two are final. */
export type OperationStatus = "pending" | "running" | "completed" | "failed";

export type Output = {
  readonly artifact_id: string;

  /** Of a worker's file, below its SVC_OUTPUT_DIR. */
  readonly name: string;

  /** evidence: what is told of the run, under stable ids. output: what the run was for. */
  readonly kind: "evidence" | "artifact" | "output";

  /** Bytes. */
  readonly size: number;

  /** 64 hex digits; also the ETag of the bytes. */
  readonly sha256: string;

  readonly content_type: string;

  /** Where its bytes are; good as long as the run is. */
  readonly url: string;

  /** When it was kept; of evidence, when the run was created. */
  readonly created_at: string;

  /** The agent that made it; null for evidence. */
  readonly producer: string | null;

  /** For people. */
  readonly title: string | null;

  /** What to show first. */
  readonly primary: boolean;
};

/** A page of outputs, primary ones first, then oldest first. */
export type OutputPage = {
  readonly items: readonly Output[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** An error (RFC 9457). */
export type Problem = {
  readonly type: string;

  readonly title: string;

  readonly status: number;

  /** Stable, for programs. */
  readonly code: string;

  /** What happened and what to do next, for people. */
  readonly detail: string;

  /** The same as the header X-Request-Id; the server's log names it. */
  readonly request_id: string;

  readonly errors?:
    | readonly {
        /** JSON Pointer into the body, or the name of a parameter or header. */
        readonly path: string;

        readonly code: string;

        readonly message: string;
      }[]
    | undefined;
};

export type ReconcileNode = {
  /** Whether to fix what is found. */
  readonly fix?: boolean | undefined;
};

export type Reconciliation = {
  readonly node_id: string;

  /** At most 200. */
  readonly differences: readonly {
    /**
     * process: a command has left it running. attempt: it runs without its job, or its job waits for it
     * and it does not run. workspace: a folder of an attempt that does not run, or of no run. port: its
     * run has ended, and something listens. service: its job is not open here.
     */
    readonly kind: "process" | "attempt" | "workspace" | "port" | "service";

    readonly where: string;

    /** For people. */
    readonly what: string;

    /** What a fix does, for people. */
    readonly fix: string;

    /** Whether it was fixed by this request. */
    readonly fixed: boolean;
  }[];

  /** Whether there may be more than these; with 10,000 runs' folders the others are not looked at. */
  readonly has_more: boolean;
};

export type RegisterModel = {
  /** 1 to 200 characters without control characters; in paths percent-encoded. */
  readonly model_id?: string | undefined;

  /** For people. */
  readonly name?: string | undefined;

  /** Such as qwen3. */
  readonly family?: string | null | undefined;

  /**
   * One of {"file": "/path"}, {"url": "https://…", "sha256": "…", "token"?: "…"}, {"payload": "path",
   * "blueprint_id": "…"}, {"folder": "/path"}, {"ollama": {"base_url", "model"}}, {"openai":
   * {"base_url", "model", "api_key"?}}. Paths are of the machine of the gateway.
   */
  readonly source: JsonObject;

  /** What the content has to be; of a folder the SHA-256 of its list, as sha256sum prints it. */
  readonly sha256?: string | null | undefined;

  /** Such as apache-2.0. */
  readonly license?: string | null | undefined;

  /** How many numbers it has. */
  readonly parameters?: number | null | undefined;

  /** Such as Q4_K_M. */
  readonly quantisation?: string | null | undefined;

  /** Tokens that it was made for. */
  readonly context?: number | null | undefined;

  readonly requirements?:
    | {
        /** To answer with. */
        readonly memory_bytes?: number | undefined;

        /** To be installed. */
        readonly disk_bytes?: number | undefined;
      }
    | null
    | undefined;
};

export type RemoveBlueprint = {
  /** Removes nothing: the result says what would go. */
  readonly dry_run?: boolean | undefined;

  /** Keeps its resources for the next addition. */
  readonly keep_resources?: boolean | undefined;

  /** Keeps its models for the next addition. */
  readonly keep_models?: boolean | undefined;
};

export type RemoveModel = {
  /** Only tells what would go, and what needs it. */
  readonly dry_run?: boolean | undefined;

  /** Removes it also when something needs it. */
  readonly force?: boolean | undefined;
};

export type RemoveNode = {
  /** The node's id; or give its name. */
  readonly node_id?: string | undefined;

  /** The node's name, if no other node has it. */
  readonly name?: string | undefined;

  /**
   * Does not drain it: its program gives everything up with its next heartbeat, and other nodes take its
   * jobs over.
   */
  readonly force?: boolean | undefined;

  /**
   * How long running attempts may go on; then they are ended, and made again on other nodes. Asked
   * again, it counts from then.
   */
  readonly deadline_seconds?: number | undefined;
};

/** What the machines of all living nodes have together, and what of it commands may have. */
export type Resource = {
  readonly totals: ResourceTotals;

  readonly effective: ResourceTotals;

  readonly reserved: ResourceReserved;

  readonly used: ResourceUse;

  readonly limits: ResourceLimits;

  /** The living nodes, by name; another one as of its last heartbeat. */
  readonly nodes: readonly {
    readonly node_id: string;

    readonly name: string;

    readonly totals: ResourceTotals;

    readonly effective: ResourceTotals;

    readonly reserved: ResourceReserved;

    readonly used: ResourceUse;

    /** Folders in its SVC_HOME/volumes. */
    readonly volumes: readonly string[];
  }[];

  /** Of the limits: each change adds one. */
  readonly revision: number;
};

/** What of each machine commands may have. What has no limit is left out, and may be had whole. */
export type ResourceLimits = {
  /** Percent of the cores of each machine. */
  readonly cpu_percent?: number | undefined;

  /** Percent of the memory of each machine. */
  readonly memory_percent?: number | undefined;

  /** Bytes of the memory of each machine. */
  readonly memory_bytes?: number | undefined;

  /** Percent of the disk of each machine. */
  readonly disk_percent?: number | undefined;

  /** Bytes of the disk of each machine. */
  readonly disk_bytes?: number | undefined;

  /** The GPUs of each machine that commands may have; none: []. */
  readonly gpu_indices?: readonly number[] | undefined;
};

/** What running commands have been given. */
export type ResourceReserved = {
  readonly cpu_cores: number;

  readonly memory_bytes: number;

  readonly disk_bytes: number;

  /** How many. */
  readonly gpus: number;

  /** Of one command each, on its machine; of all that is had by name the first thousand. */
  readonly ports: readonly number[];

  /** That commands have. */
  readonly volumes: readonly {
    readonly name: string;

    /** Whether several may have it. */
    readonly read_only: boolean;
  }[];

  /** Of one command each, on its machine. */
  readonly devices: readonly string[];
};

export type ResourceTotals = {
  readonly cpu_cores: number;

  /** Inside a container: what it may have. */
  readonly memory_bytes: number;

  /** Of the file system that holds SVC_HOME. */
  readonly disk_bytes: number;

  /** Those that nvidia-smi names. */
  readonly gpus: readonly {
    /** On its machine. */
    readonly index: number;

    readonly name: string;

    readonly memory_bytes: number;
  }[];
};

/** What is used now, by whatever runs there. */
export type ResourceUse = {
  readonly cpu_cores: number;

  readonly memory_bytes: number;

  readonly disk_bytes: number;
};

/** Result of the retry. */
export type Retried = {
  readonly run_id: string;

  /** Letters that were sent again. */
  readonly retried: number;

  /**
   * Letters that stay open because they would only be given up again: their agent does not exist, has
   * ended, or has no room.
   */
  readonly not_deliverable: number;
};

export type RetryDeadLetter = {
  /**
   * Sent in place of the message's own, which stays in the record; a mask in it keeps the secret that is
   * there. Without it the message is sent as it was.
   */
  readonly body?: unknown | undefined;
};

export type RollbackDeployment = {
  /** One that is kept. Default: the last one before that had succeeded. */
  readonly version?: number | undefined;
};

/** One execution of a job. */
export type Run = {
  readonly run_id: string;

  readonly job_id: string;

  readonly job_name: string;

  /** Of which its job was made. */
  readonly blueprint_id: string | null;

  /** The run that it repeats. */
  readonly rerun_of: string | null;

  readonly status: RunStatus;

  readonly desired_state: DesiredState;

  /** As given at creation. */
  readonly inputs: JsonObject;

  /** As given at creation; secrets are shown as "********". */
  readonly config_overrides: JsonObject | null;

  /**
   * Who is granted slots first when several wait; normal, the default. A run that is passed over rises
   * by one for each minute.
   */
  readonly priority: "low" | "normal" | "high";

  readonly trigger: {
    readonly kind: "api" | "blueprint" | "schedule" | "event" | "deployment";

    /** Of the schedule, event, blueprint or deployment. */
    readonly id: string | null;
  };

  readonly attempt: number;

  /** When the run was accepted. */
  readonly created_at: string;

  /** When its graph began to run. */
  readonly started_at: string | null;

  /** When it ended. */
  readonly finished_at: string | null;

  /** Last change. */
  readonly updated_at: string;

  /** From its start to its end, or to now. */
  readonly duration_ms: number | null;

  readonly progress: {
    readonly agents_total: number;

    /** Agents that have done what there was for them so far; of an ended run, those that ended well. */
    readonly agents_done: number;

    /** How many agents ended how; only of a run that has ended. */
    readonly agents?:
      | {
          /** They ended well. */
          readonly done: number;

          readonly failed: number;

          /** At work, or with messages to read, when the run ended. */
          readonly cancelled: number;

          /** The run ended before anything came to them. */
          readonly skipped: number;

          /** No message ever reached them, though the run was completed. */
          readonly not_reached: number;
        }
      | undefined;

    /** Messages sent so far. */
    readonly messages: number;

    readonly tasks_running: number;

    /** Requests to people that nobody has answered yet. */
    readonly human_pending: number;

    /** For people. */
    readonly label: string;
  };

  readonly counts: {
    /** Warnings in its log. */
    readonly warnings: number;

    /** Attempts that were made again. */
    readonly retries: number;

    /** Requests to people that can be answered. */
    readonly human_pending: number;

    /** Open ones; 1000 for as many or more. */
    readonly dead_letters: number;

    /** That workers reported; null when none did. */
    readonly tokens: number | null;
  };

  /** Null until there is one. */
  readonly result: JsonObject | null;

  /** svc.error.v1; null unless the run failed. */
  readonly failure: JsonObject | null;

  /** For people: failure.desc, or why the run is queued; else null. */
  readonly reason: string | null;

  /** For people: failure.desc, or why the run is queued; else null. */
  readonly status_reason: string | null;

  /** W3C trace id. */
  readonly trace_id: string;

  /**
   * Where to look next: self, job, events, events_stream, stream, result, logs, timeline, artifacts,
   * outputs, human, dead_letters, observability_summary, reruns.
   */
  readonly links: Readonly<Record<string, string>>;
};

/** Something that happened in a run. It never changes, and none is missing between two ids. */
export type RunEvent = {
  /** Its place in the run's history, from 1; what Last-Event-ID means. */
  readonly id: number;

  readonly run_id: string;

  /** When it happened. */
  readonly timestamp: string;

  readonly type: string;

  /** Null for what concerns the whole run. */
  readonly agent_id: string | null;

  /** What the type says about it; for engine events an object. */
  readonly payload: unknown;

  /** svc.error.v1, in events that tell of a failure. */
  readonly error?: JsonObject | undefined;
};

/**
 * A page of events, oldest first; with filters a page may be short, or empty, and still not be the
 * last one.
 */
export type RunEventPage = {
  readonly items: readonly RunEvent[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** A page of runs, newest first. */
export type RunPage = {
  readonly items: readonly Run[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/** What a run came to; look at status first. */
export type RunResult = {
  readonly run_id: string;

  readonly status: RunStatus;

  /** Null until the run has completed, and when it failed. */
  readonly result: JsonObject | null;

  /** svc.error.v1; null when nothing failed. */
  readonly failure: JsonObject | null;

  /** true when the run completed although some messages failed (failure_policy continue). */
  readonly partial?: boolean | undefined;

  /** Null while the run has not ended. */
  readonly finished_at: string | null;
};

/** completed, failed and cancelled are final. */
export type RunStatus = "pending" | "queued" | "running" | "paused" | "completed" | "failed" | "cancelled";

export type RunSummary = {
  readonly run_id: string;

  readonly status: RunStatus;

  readonly desired_state: DesiredState;

  /** When the run was accepted. */
  readonly created_at: string;

  /** When its graph began to run. */
  readonly started_at: string | null;

  /** When it ended. */
  readonly finished_at: string | null;

  /** Last change. */
  readonly updated_at: string;
};

/** Whether the embedded runtime takes work. */
export type RuntimeHealth = {
  /** degraded: nothing new is accepted at the moment. */
  readonly status: "ok" | "degraded";

  readonly checks: {
    /** failing: what is done cannot be committed. */
    readonly store: "ok" | "failing";

    /** stopping: the program shuts down. */
    readonly runtime: "ok" | "stopping";
  };

  /** Why nothing new is accepted at the moment; absent while all is well. */
  readonly detail?: string | undefined;
};

/** The embedded runtime of the node that answers, at this moment. */
export type RuntimeStatus = {
  /** degraded: the store takes no writes; open runs wait. */
  readonly status: "running" | "degraded" | "stopping";

  /** Of the program. */
  readonly version: string;

  /** When the process started. */
  readonly started_at: string;

  /** Since the start. */
  readonly uptime_seconds: number;

  /** Runs in the runtime that have not ended, those of its own API included. */
  readonly open_jobs: number;

  /** Accepted runs that the runtime does not have yet. */
  readonly launches_waiting: number;

  readonly executor_pools: ExecutorPools;

  /** How long the event loop kept callers waiting, over the last minutes. */
  readonly event_loop_lag_ms: {
    readonly p50: number;

    readonly p99: number;

    readonly max: number;
  };

  /** Why nothing new is accepted at the moment; absent while all is well. */
  readonly detail?: string | undefined;
};

/** A rule by which runs of a job are started. */
export type Schedule = {
  readonly schedule_id: string;

  readonly name: string;

  readonly kind: "cron" | "delayed" | "event";

  /** completed: no time will be due any more; failed: its job was deleted. */
  readonly status: "active" | "paused" | "completed" | "failed";

  /** Why it is paused or failed, if nobody asked for it. */
  readonly status_reason: string | null;

  readonly target: {
    readonly job_id?: string | undefined;

    readonly blueprint_id?: string | undefined;
  };

  /** Whose runs are started. */
  readonly job_id: string;

  /** What each run is given; secrets are masked. */
  readonly inputs: JsonObject;

  /** The same of the configuration. */
  readonly config_overrides: JsonObject | null;

  /**
   * Who is granted slots first when several wait; normal, the default. A run that is passed over rises
   * by one for each minute.
   */
  readonly priority: "low" | "normal" | "high";

  readonly cron: {
    readonly expressions: readonly string[];

    readonly timezone: string;

    readonly jitter_seconds: number;
  } | null;

  readonly delayed: {
    /** When the run is started. */
    readonly at: string;
  } | null;

  readonly event: {
    readonly type: string;

    readonly filters: readonly {
      /** A JSON Pointer from the event: /type, /source, /payload and what is in it, /event_id, /received_at. */
      readonly path: string;

      /**
       * eq and ne compare any JSON; in: one of a list; prefix: of a text; contains: a part of a text, or an
       * item of a list; exists: true or false; gt, gte, lt and lte compare numbers, or texts. What is not
       * there passes ne and exists: false only.
       */
      readonly op: "eq" | "ne" | "in" | "prefix" | "contains" | "exists" | "gt" | "gte" | "lt" | "lte";

      /** What is compared with. Of exists: true without it. */
      readonly value: unknown;
    }[];

    /** A run is started for the last of several events, once none has come for so long. */
    readonly debounce_seconds: number | null;

    /** After the start of a run, events start none for so long. */
    readonly throttle_seconds: number | null;

    readonly batch: {
      /** A run starts when there are so many. */
      readonly max: number;

      /** And at most so long after the first. */
      readonly seconds: number;
    } | null;
  } | null;

  readonly webhook: {
    /** From the gateway's root. */
    readonly path: string;

    /** Shown once, to the caller who has made or changed it; then ********. */
    readonly secret: string;

    /**
     * How requests are signed. github: X-Hub-Signature-256. stripe: Stripe-Signature. hmac-sha256: as
     * Standard Webhooks has it, webhook-id, webhook-timestamp and webhook-signature.
     */
    readonly scheme: "github" | "stripe" | "hmac-sha256";

    /** How far the time that a request was signed at may be from now; GitHub signs none. Default: 300. */
    readonly tolerance_seconds: number;
  } | null;

  /**
   * When the run before has not ended: start none (skip, the default), start one all the same, let one
   * wait for its end, or cancel it.
   */
  readonly overlap: "skip" | "allow" | "queue_one" | "cancel_previous";

  /**
   * Times at which nothing was running, or that are more than a minute late: start no run for them, one
   * for the last of them (run_once, the default), or one for each.
   */
  readonly missed: "skip" | "run_once" | "run_all";

  /** Most missed times, the latest ones, that run_all makes up for. Default: 100. */
  readonly catchup_limit: number;

  /** No run is started behind it. */
  readonly until: string | null;

  /** After so many the schedule is completed. */
  readonly max_runs: number | null;

  /** Pauses the schedule when so many runs in a row have failed or were refused. */
  readonly pause_after_failures: number | null;

  /** With the jitter; null while no run will be started. */
  readonly next_run_at: string | null;

  /** The next 5 due times. */
  readonly next_runs: readonly string[];

  /** The rule in plain English. */
  readonly description: string;

  readonly last_dispatch: {
    /** The due time. */
    readonly due_at: string;

    /** When it was looked at. */
    readonly dispatched_at: string;

    readonly run_id: string | null;

    readonly outcome: "dispatched" | "skipped" | "queued" | "failed";

    /** Why there is no run. */
    readonly reason: string | null;
  } | null;

  readonly counts: {
    /** Runs that were started, and starts that were refused. */
    readonly dispatched: number;

    /** Due times without a run because the one before had not ended. */
    readonly skipped: number;

    /** Due times that nobody came to; of one outage at most 100 are counted. */
    readonly missed: number;

    /** Starts that were refused, and runs that failed. */
    readonly failed: number;
  };

  readonly revision: number;

  /** When it was made. */
  readonly created_at: string;

  /** Last change of anything that is shown. */
  readonly updated_at: string;
};

export type ScheduleDispatch = {
  readonly run_id: string;
};

/** A page of schedules, newest first. */
export type SchedulePage = {
  readonly items: readonly Schedule[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

export type ServeModel = {
  /** Tokens of a request and its answer. Default: the model's own, at most 8,192. */
  readonly context?: number | undefined;

  /**
   * Requests that are answered at the same time. Default: 1 of a model's own process, 8 of a server
   * elsewhere.
   */
  readonly concurrency?: number | undefined;

  /** Further requests that wait; more are answered with 429. Default: 64. */
  readonly queue?: number | undefined;

  /**
   * After so long without a request the model's process ends; the next request starts it again. 0:
   * never. Default: 300.
   */
  readonly idle_unload_seconds?: number | undefined;

  /** Whether a GGUF model makes embeddings, and nothing else. Default: false. */
  readonly embeddings?: boolean | undefined;
};

/** A long-lived process that an open run offers, found by its name. */
export type Service = {
  /** The same for every attempt of its agent, and after a restart. */
  readonly service_id: string;

  readonly name: string;

  /**
   * passing only while every check has found it reachable; critical before the first time, and after
   * failures.
   */
  readonly status: "passing" | "critical";

  readonly tags: readonly string[];

  /** As declared, with public_url, run_id, job_id and node. */
  readonly meta: JsonObject;

  /** The host that callers use; 127.0.0.1 is its node itself. */
  readonly address: string;

  /** Null without one. */
  readonly port: number | null;

  /** What a browser is given; null without one. */
  readonly public_url: string | null;

  /** Null for a service of a job that was submitted to the runtime API. */
  readonly job_id: string | null;

  /** Null for a service of a job that was submitted to the runtime API. */
  readonly run_id: string | null;

  /** The agent whose command offers it; null for the job as a whole. */
  readonly agent_id: string | null;

  /** The name of the node that it runs on. */
  readonly node: string;

  readonly checks: readonly {
    readonly name: string;

    readonly type: "http" | "tcp" | "grpc" | "script";

    /**
     * passing only while every check has found it reachable; critical before the first time, and after
     * failures.
     */
    readonly status: "passing" | "critical";

    /** What was found, for people. */
    readonly output: string;

    /** Failures in a row, up to now. */
    readonly failures: number;

    /** When it was made last; null before the first time. */
    readonly last_checked_at: string | null;
  }[];

  /** When its job, or the command of its agent, began. */
  readonly registered_at: string;

  /** When its status changed last. */
  readonly updated_at: string;
};

/** A page of services, by name. */
export type ServicePage = {
  readonly items: readonly Service[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;

  /** Names of the nodes that do not answer now, whose services are left out. */
  readonly unreachable_nodes: readonly string[];
};

/** A session of a browser, or a link that opens one. */
export type Session = {
  readonly session_id: string;

  /**
   * session: a browser that has signed in. link: signs a browser in, once. share: shows one run to
   * everybody who has it.
   */
  readonly kind: "session" | "link" | "share";

  /** The one run that it shows; null: everything. */
  readonly run_id: string | null;

  /** The share that opened the session. */
  readonly opened_by: string | null;

  /** When it was made. */
  readonly created_at: string;

  /** When it ends; a session that is used, later. */
  readonly expires_at: string;

  /**
   * Of a new link or share: what to open, on this gateway. Shown once: a repeated request is answered
   * without it.
   */
  readonly path?: string | undefined;
};

/** A page of sessions and links that are good, newest first. */
export type SessionPage = {
  readonly items: readonly Session[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

export type SetMaintenance = {
  /** Whether the node is to stay without work, also when its program starts again. */
  readonly enabled: boolean;

  /** For people. */
  readonly reason?: string | undefined;
};

export type SetResourceLimits = {
  readonly limits: {
    /** Percent of the cores of each machine. */
    readonly cpu_percent?: number | null | undefined;

    /** Percent of the memory of each machine. */
    readonly memory_percent?: number | null | undefined;

    /** Bytes of the memory of each machine. */
    readonly memory_bytes?: number | null | undefined;

    /** Percent of the disk of each machine. */
    readonly disk_percent?: number | null | undefined;

    /** Bytes of the disk of each machine. */
    readonly disk_bytes?: number | null | undefined;

    /** The GPUs of each machine that commands may have; none: []. */
    readonly gpu_indices?: readonly number[] | null | undefined;
  };
};

/** What the program that answers was started with. */
export type Settings = {
  /** Every one, in the order of `troupe config`. */
  readonly settings: readonly {
    readonly variable: string;

    /** As it is in use; a secret is masked. */
    readonly value: string;

    /** cluster.json: of a home that has joined a cluster. */
    readonly from: "default" | "environment" | "cluster.json";

    /** For people. */
    readonly meaning: string;
  }[];
};

export type SignIn = {
  /** The API token. */
  readonly token?: string | undefined;

  /** The end of a link, behind #link=. */
  readonly link?: string | undefined;

  /** The end of a link to a run, behind #share=. */
  readonly share?: string | undefined;
};

/** Whether a browser has to sign in. */
export type SignInState = {
  /** Whether the gateway asks for a sign-in. */
  readonly needs_token: boolean;

  /** Whether this request would be let in. */
  readonly signed_in: boolean;

  /** The one run that the session shows; null: everything. */
  readonly run_id: string | null;
};

/** A new session. Its first secret is in an HttpOnly cookie. */
export type SignedIn = {
  /** The session's second key: every request sends it as X-Console-Key, beside the cookie. */
  readonly key: string;

  /** When the session ends unless it is used. */
  readonly expires_at: string;

  /** The one run that the session shows; null: everything. */
  readonly run_id: string | null;
};

/** What became of each item. */
export type StartedRuns = {
  /** In the order of the request. Each has id, and run when it has ended; or error. */
  readonly items: readonly {
    /**
     * What the item would have been answered with alone: 202 when its run was accepted, 200 when it was
     * waited for and has ended, 4xx when it was refused.
     */
    readonly status: number;

    /** The run's id. */
    readonly id?: string | undefined;

    readonly run?: Run | undefined;

    readonly error?: Problem | undefined;
  }[];
};

/**
 * The cluster in a few numbers. Pools and attempts are those of the nodes that are neither lost nor
 * left, together.
 */
export type SystemSummary = {
  /** At most 1,000, the living ones first; GET /nodes has all. */
  readonly nodes: readonly Node[];

  readonly executor_pools: ExecutorPools;

  /** Attempts that run. */
  readonly tasks_running: number;

  readonly jobs: {
    /** Jobs there are. */
    readonly total: number;

    /** Those whose latest run has not ended, or that have none yet. */
    readonly open: number;
  };

  /** Runs by status. */
  readonly runs: {
    /** Accepted, not yet begun. */
    readonly pending: number;

    /** Waiting for slots. */
    readonly queued: number;

    /** At work. */
    readonly running: number;

    /** Paused. */
    readonly paused: number;

    /** Ended well. */
    readonly completed: number;

    /** Ended with a failure. */
    readonly failed: number;

    /** Cancelled. */
    readonly cancelled: number;
  };

  /**
   * Runs by the hour in which they ended, as many hours as were asked for, the oldest first; the last
   * one is not over.
   */
  readonly ends: readonly {
    /** Where the hour begins. */
    readonly from: string;

    /** Ended well. */
    readonly completed: number;

    /** Ended with a failure. */
    readonly failed: number;

    /** Cancelled. */
    readonly cancelled: number;
  }[];

  /** Counting stops here: a count of this means so many or more. */
  readonly count_max: number;
};

/** A ticket. */
export type Ticket = {
  /** The path with a ticket: may be read once, within a minute. */
  readonly url: string;
};

export type TicketRequest = {
  /** What is to be read, with its query. */
  readonly path: string;
};

/** A page of timeline records, oldest first. */
export type TimelinePage = {
  readonly items: readonly TimelineRecord[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

export type TimelineRecord = {
  readonly schema_version: "svc.timeline.v1";

  /** When it happened. */
  readonly ts: string;

  readonly run_id: string;

  /** W3C trace id. */
  readonly trace_id: string;

  /** W3C span id. */
  readonly span_id: string;

  /** W3C span id. */
  readonly parent_span_id: string | null;

  /** What the record is about. */
  readonly type: "run" | "agent" | "task" | "lease" | "attempt" | "artifact" | "message" | "human";

  /** What happened to it. */
  readonly phase: string;

  /** Null for what concerns the whole run. */
  readonly agent_id: string | null;

  /** The node of the graph, by its id. */
  readonly step_id: string | null;

  /** What it is from then on. */
  readonly status: string;

  /** Of what has ended, where that is known. */
  readonly duration_ms: number | null;

  /** For people. */
  readonly summary: string;

  /** Where to look next. */
  readonly links: Readonly<Record<string, string>>;

  /** The event's id, type and payload. */
  readonly details: JsonObject;
};

/** Something that has happened outside, or the end of a run. */
export type TriggerEvent = {
  readonly event_id: string;

  readonly type: string;

  readonly source: string | null;

  /** As it was sent; null without one. */
  readonly payload: unknown;

  /** When it was received. */
  readonly received_at: string;

  /** The schedules that react to it. */
  readonly matched: readonly EventMatch[];
};

/** A page of events, newest first. */
export type TriggerEventPage = {
  readonly items: readonly TriggerEvent[];

  /** Pass it back as page_token for the next page; null on the last one, and on no other, however short. */
  readonly next_page_token: string | null;
};

/**
 * A JSON merge patch (RFC 7396): null takes a key of config away, "********" keeps the secret that is
 * stored. Another source or config is a new version, and the rollout begins at once; count, strategy
 * and name are not.
 */
export type UpdateDeployment = {
  /** For people. */
  readonly name?: string | undefined;

  readonly source?: DeploymentSource | undefined;

  /** Laid over the configuration of the source, as that of a job. */
  readonly config?: JsonObject | null | undefined;

  /** How many instances there are to be. */
  readonly count?: number | undefined;

  readonly strategy?: DeploymentStrategy | undefined;
};

/** A JSON merge patch (RFC 7396): null takes a key away, "********" keeps the secret that is stored. */
export type UpdateJob = {
  /** For people. */
  readonly name?: string | undefined;

  /**
   * Laid over the bundle's own. Values under keys that look like secrets are stored encrypted; {"$env":
   * "NAME"} is read from the runtime's environment at launch.
   */
  readonly resolved_configuration?: JsonObject | null | undefined;

  /**
   * Slots that the job is granted in its turn while others wait for them, too: jobs share a pool by
   * their weights. 1, the default. Of runs that start later.
   */
  readonly weight?: number | undefined;
};

export type UpdateModel = {
  /** For people. */
  readonly name?: string | undefined;

  /** Such as qwen3. */
  readonly family?: string | null | undefined;

  /**
   * One of {"file": "/path"}, {"url": "https://…", "sha256": "…", "token"?: "…"}, {"payload": "path",
   * "blueprint_id": "…"}, {"folder": "/path"}, {"ollama": {"base_url", "model"}}, {"openai":
   * {"base_url", "model", "api_key"?}}. Paths are of the machine of the gateway.
   */
  readonly source?: JsonObject | undefined;

  /** What the content has to be; of a folder the SHA-256 of its list, as sha256sum prints it. */
  readonly sha256?: string | null | undefined;

  /** Such as apache-2.0. */
  readonly license?: string | null | undefined;

  /** How many numbers it has. */
  readonly parameters?: number | null | undefined;

  /** Such as Q4_K_M. */
  readonly quantisation?: string | null | undefined;

  /** Tokens that it was made for. */
  readonly context?: number | null | undefined;

  readonly requirements?:
    | {
        /** To answer with. */
        readonly memory_bytes?: number | undefined;

        /** To be installed. */
        readonly disk_bytes?: number | undefined;
      }
    | null
    | undefined;
};

export type UpdateModelInstallation = {
  /** Whether it stays as it is. */
  readonly pinned: boolean;
};

/**
 * A JSON merge patch (RFC 7396): null takes a key away, "********" keeps the secret that is stored. A
 * new rule counts from now on; a schedule that was completed goes on with it.
 */
export type UpdateSchedule = {
  /** For people. */
  readonly name?: string | undefined;

  readonly cron?: CronRule | undefined;

  readonly delayed?: Delay | undefined;

  readonly event?: EventRule | undefined;

  readonly webhook?: WebhookSettings | undefined;

  /**
   * As in the start of a run. A value {"$event": "/payload/name"} becomes what is there in the event
   * that a run is started for, {"$schedule": "due_at"} the time that it is due at.
   */
  readonly inputs?: JsonObject | undefined;

  /**
   * Who is granted slots first when several wait; normal, the default. A run that is passed over rises
   * by one for each minute.
   */
  readonly priority?: "low" | "normal" | "high" | undefined;

  /**
   * When the run before has not ended: start none (skip, the default), start one all the same, let one
   * wait for its end, or cancel it.
   */
  readonly overlap?: "skip" | "allow" | "queue_one" | "cancel_previous" | undefined;

  /**
   * Times at which nothing was running, or that are more than a minute late: start no run for them, one
   * for the last of them (run_once, the default), or one for each.
   */
  readonly missed?: "skip" | "run_once" | "run_all" | undefined;

  /** Most missed times, the latest ones, that run_all makes up for. Default: 100. */
  readonly catchup_limit?: number | undefined;

  /** No run is started behind it. */
  readonly until?: string | null | undefined;

  /** After so many the schedule is completed. */
  readonly max_runs?: number | null | undefined;

  /** Pauses the schedule when so many runs in a row have failed or were refused. */
  readonly pause_after_failures?: number | null | undefined;

  /** As in the start of a run: for jobs made from a catalog blueprint only. */
  readonly config_overrides?: JsonObject | null | undefined;
};

export type ValidateBlueprint = {
  /**
   * One body for every entrypoint, in place of the manifest's initial_inputs; {} leaves those.
   * {"$entrypoints": {"id": [bodies]}} addresses entrypoints one by one.
   */
  readonly inputs?: JsonObject | undefined;

  /** What would be a launch's config_overrides. */
  readonly config?: JsonObject | undefined;
};

export type ValidateModel = {
  /** Tokens that are to be kept. Default: the model's own, at most 8,192. */
  readonly context?: number | undefined;
};

/** The event that a request has become. */
export type WebhookEvent = {
  readonly event_id: string;

  /** That of the schedule. */
  readonly type: string;

  /** webhook: and the schedule's id. */
  readonly source: string;

  /** When it was received. */
  readonly received_at: string;

  /** The schedules that react to it. */
  readonly matched: readonly EventMatch[];
};

/**
 * Of a schedule of kind event: POST to its path, signed, is an event of the schedule's type. null
 * removes it.
 */
export type WebhookSettings = {
  /**
   * How requests are signed. github: X-Hub-Signature-256. stripe: Stripe-Signature. hmac-sha256: as
   * Standard Webhooks has it, webhook-id, webhook-timestamp and webhook-signature.
   */
  readonly scheme?: "github" | "stripe" | "hmac-sha256" | undefined;

  /** What requests are signed with. Without it, or with null, one is made. */
  readonly secret?: string | null | undefined;

  /** How far the time that a request was signed at may be from now; GitHub signs none. Default: 300. */
  readonly tolerance_seconds?: number | undefined;

  /** As it is shown; null makes another one. */
  readonly path?: string | null | undefined;
} | null;

/** How far a run of the job has come. */
export type WorkflowProgress = {
  readonly job_id: string;

  readonly run_id: string | null;

  readonly status: RunStatus | null;

  readonly progress: {
    /** 0 to 100. */
    readonly percent: number;

    /** Agents that have done what there was for them so far; of an ended run, those that ended well. */
    readonly done: number;

    /** Agents. */
    readonly total: number;

    /** How many agents ended how; only of a run that has ended. */
    readonly agents?:
      | {
          /** They ended well. */
          readonly done: number;

          readonly failed: number;

          /** At work, or with messages to read, when the run ended. */
          readonly cancelled: number;

          /** The run ended before anything came to them. */
          readonly skipped: number;

          /** No message ever reached them, though the run was completed. */
          readonly not_reached: number;
        }
      | undefined;

    /** For people. */
    readonly label: string;
  };

  /** The graph's nodes in its order; at most 1,000, those that something can be said of. */
  readonly steps: readonly {
    readonly step_id: string;

    readonly name: string;

    readonly agent_id: string;

    /**
     * pending: nothing has come to it. ready: it has worked and may get more. waiting: for slots, a retry
     * or something outside. skipped: the run ended before anything came to it. not_reached: the run was
     * completed, and no message ever reached it.
     */
    readonly state:
      | "pending"
      | "ready"
      | "running"
      | "waiting"
      | "paused"
      | "done"
      | "failed"
      | "cancelled"
      | "skipped"
      | "not_reached";

    /** Of its task, from 1; null without one. */
    readonly attempt: number | null;

    /**
     * When the attempt began; of a node without attempts, when its first message came. Null while that is
     * not known.
     */
    readonly started_at: string | null;

    /** When the attempt, or the node, was through; null while it runs, or not known. */
    readonly finished_at: string | null;

    /** From the one to the other, or to now. */
    readonly duration_ms: number | null;

    /** svc.error.v1; what failed there, in spite of which the run may have gone on. */
    readonly failure: JsonObject | null;
  }[];

  /** The same nodes, with what their agents did. */
  readonly agents: readonly {
    readonly agent_id: string;

    readonly agent_type: string;

    /**
     * pending: nothing has come to it. ready: it has worked and may get more. waiting: for slots, a retry
     * or something outside. skipped: the run ended before anything came to it. not_reached: the run was
     * completed, and no message ever reached it.
     */
    readonly state:
      | "pending"
      | "ready"
      | "running"
      | "waiting"
      | "paused"
      | "done"
      | "failed"
      | "cancelled"
      | "skipped"
      | "not_reached";

    /** Of its task, from 1; null without one. */
    readonly attempt: number | null;

    /**
     * When the attempt began; of a node without attempts, when its first message came. Null while that is
     * not known.
     */
    readonly started_at: string | null;

    /** When the attempt, or the node, was through; null while it runs, or not known. */
    readonly finished_at: string | null;

    /** From the one to the other, or to now. */
    readonly duration_ms: number | null;

    /** svc.error.v1; what failed there, in spite of which the run may have gone on. */
    readonly failure: JsonObject | null;

    readonly processed_messages: number;

    /** Messages that wait for it. */
    readonly mailbox_depth: number;

    readonly last_error: string | null;
  }[];

  /** svc.error.v1; null unless the run failed. */
  readonly failure: JsonObject | null;

  /** For people: failure.desc, or why the run is queued; else null. */
  readonly reason: string | null;

  /** For people: failure.desc, or why the run is queued; else null. */
  readonly status_reason: string | null;

  /** W3C trace id. */
  readonly trace_id: string | null;

  readonly observability_summary: ObservabilitySummary | null;

  /**
   * Until the end, about: what the last completed runs of the job took, less what this one has taken; 0
   * when it takes longer. Null without such runs, and when it is not running.
   */
  readonly eta_ms: number | null;
};

/** The codes of problems, each with what it means. */
export const problemCodes = [
  /** The request is not valid HTTP; check how it is sent. */
  "malformed_request",
  /** The body is not valid JSON; the detail says where. */
  "malformed_json",
  /** A query value or header is wrong; errors names each. */
  "invalid_parameter",
  /** The page token is changed, expired or from another query; start again with the first page. */
  "invalid_page_token",
  /** Send the API token as Authorization: Bearer. */
  "unauthorized",
  /** The request to a webhook is not signed with its secret, or too long ago; the detail says which. */
  "invalid_signature",
  /** The gateway does not answer to this host name or web site. */
  "forbidden",
  /** There is nothing at this path; GET /openapi.json lists the routes. */
  "not_found",
  /** No job has this id, or it was deleted; list the jobs. */
  "job_not_found",
  /** No run has this id, or its job was deleted; list the runs. */
  "run_not_found",
  /** No bundle has this id; list the bundles or upload it. */
  "bundle_not_found",
  /** The run has no such artifact, or it was removed with age; list the run's artifacts. */
  "artifact_not_found",
  /** The run has asked nothing under this id; list what it asks. */
  "human_request_not_found",
  /** The run has no dead letter with this id; list its dead letters. */
  "dead_letter_not_found",
  /** The catalog has no blueprint of this id; list the blueprints, or see SVC_BLUEPRINT_CATALOG. */
  "blueprint_not_found",
  /** No operation has this id, or it was removed with age; list the operations. */
  "operation_not_found",
  /** No session or link has this id, or it has ended; list the sessions. */
  "session_not_found",
  /** No deployment has this id, or it was removed; list the deployments. */
  "deployment_not_found",
  /** No model has this id, or it was removed; list the models. */
  "model_not_found",
  /** No schedule has this id, or it was removed; list the schedules. */
  "schedule_not_found",
  /** No event has this id, or it is older than a week; list the events. */
  "event_not_found",
  /** No node has this id, or it was removed; list the nodes. */
  "node_not_found",
  /** No open run has such a service; list the services there are. */
  "service_not_found",
  /** No node has such a volume; list them with GET /resource. */
  "volume_not_found",
  /** The path takes other methods; Allow lists them. */
  "method_not_allowed",
  /** The request did not arrive in time; send it again. */
  "request_timeout",
  /** The resource's state does not allow this; the detail says what would. */
  "conflict",
  /** The run cannot go from its status to the desired state; read the run first. */
  "invalid_transition",
  /** The run has ended and takes nothing any more; start a new one. */
  "run_ended",
  /** The request has another answer, which stands; the detail says whose and since when. */
  "already_answered",
  /** The time for an answer was over; the worker was told the default action. */
  "human_request_timed_out",
  /** The dead letter was sent again before; look at the run. */
  "already_retried",
  /** The key was used for another request in the last 24 hours; send a fresh one. */
  "idempotency_key_reused",
  /** The job has runs that have not ended; wait, cancel them, or use force=true. */
  "active_runs",
  /** A job was made from the bundle; delete the job first. */
  "bundle_in_use",
  /** A command has the volume; wait until its run has ended, or cancel it. */
  "volume_in_use",
  /** The machine has no free port for the run; end other runs first. */
  "no_free_port",
  /** The blueprint's folder has mistakes; GET the blueprint lists them. Fix them, then try again. */
  "blueprint_broken",
  /** The blueprint is being added or removed; wait for the operation that the detail names. */
  "blueprint_busy",
  /** Runs of the blueprint have not ended; wait for them or cancel them, then remove it. */
  "blueprint_in_use",
  /** This machine lacks what the package requires; errors names each requirement and what to do. */
  "requirements_not_met",
  /** A node asks for more cores, memory, disk or GPUs than any machine has for commands, or for a sandbox where none can be had; ask for less, raise the limits, or do what the detail says. */
  "resource_unsatisfiable",
  /** The program is the only node: set SVC_DATABASE_URL=postgres://… for all that are to be nodes of one cluster. */
  "not_clustered",
  /** No other node is ready to take the node's jobs, and stays; use force to remove it all the same. */
  "last_node",
  /** The model is being changed; wait for the operation that the detail names. */
  "model_busy",
  /** Something needs the model; the detail says what, and what to do. */
  "model_in_use",
  /** The node is being removed, or leaves; wait for the operation that the detail names. */
  "node_busy",
  /** The resource has changed; the ETag header has the current one. Read it again, then retry. */
  "precondition_failed",
  /** The body is over the limit; send less. */
  "payload_too_large",
  /** Shorten the path or the query. */
  "uri_too_long",
  /** Send the content type that the route takes. */
  "unsupported_media_type",
  /** The Range lies outside the file; Content-Range has its size. */
  "range_not_satisfiable",
  /** The body does not fit its schema, unknown fields included; errors names each mistake. */
  "validation_failed",
  /** Send If-Match with the resource's ETag. */
  "precondition_required",
  /** Wait as many seconds as Retry-After says, then try again. */
  "rate_limited",
  /** Send fewer or shorter headers. */
  "headers_too_large",
  /** The server's log has the cause under the request id. */
  "internal",
  /** The service is there, and its checks do not pass; GET /services shows why. */
  "service_not_passing",
  /** Wait as many seconds as Retry-After says, then try again. */
  "unavailable",
  /** All bundles together are at SVC_BUNDLES_MAX_BYTES; delete some that no job uses, or raise it. */
  "insufficient_storage",
] as const;

export type ProblemCode = (typeof problemCodes)[number];

/** What each operation takes and answers. */
export interface Operations {
  /**
   * Add a blueprint (POST /api/v1/blueprints/{blueprint_id}/additions)
   *
   * Prepares it for runs: its package is copied, its resources are made, its models installed. Follow
   * the operation at Location; it goes on whatever becomes of this request. A blueprint that is added
   * and has not changed is through at once.
   */
  readonly addBlueprint: {
    readonly request: {
      readonly path: {
        /** The blueprint's id. */
        readonly blueprint_id: string;
      };
      readonly body: AddBlueprint;
    };
    readonly answer: Operation;
  };

  /**
   * Expect a node (POST /api/v1/system/cluster/nodes:add)
   *
   * Answers the token with which a program joins as this node, within an hour. Adding the name again
   * before it has joined makes the earlier token void. The node is a new one, also when a node of its
   * name was removed.
   */
  readonly addNode: { readonly request: { readonly body: AddNode }; readonly answer: AddedNode };

  /**
   * Answer what a run asks people (POST /api/v1/runs/{run_id}/human/{request_id}/response)
   *
   * The first answer stands, with who gave it and when; the worker gets it. The same answer of the same
   * caller may be sent again and changes nothing.
   */
  readonly answerHumanRequest: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;

        /** The request's id. */
        readonly request_id: string;
      };
      readonly body: AnswerHuman;
    };
    readonly answer: HumanRequest;
  };

  /**
   * Ask a job, in the Model Context Protocol (POST /api/v1/jobs/{job_id}/mcp)
   *
   * For clients of the Model Context Protocol (Streamable HTTP, stateless): the tools get_job_profile,
   * get_latest_run, get_job_context and ask_job. They serve what the job has published, and change
   * nothing. There is none (404) unless the job's package enables the extension svc.response; of a
   * package that collaborates in the older way (svc.collaboration), ask_job is left out. What the
   * protocol refuses is answered as it has it. docs/ask.md has the settings of clients.
   */
  readonly callJobTools: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly body: McpMessage;
    };
    readonly answer: McpAnswer;
  };

  /** Cancel every open run of a job (POST /api/v1/jobs/{job_id}/cancel) */
  readonly cancelJob: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
    };
    readonly answer: JobControl;
  };

  /**
   * Change some limits (POST /api/v1/resource)
   *
   * Limits that are not given stay as they are; null takes one back. They hold for each machine, from
   * now on: what runs goes on.
   */
  readonly changeResourceLimits: {
    readonly request: {
      readonly headers?:
        | {
            /** The ETag that a GET answered; without it, the change is made whatever the limits are. */
            readonly "if-match"?: string | undefined;
          }
        | undefined;
      readonly body: SetResourceLimits;
    };
    readonly answer: Resource;
  };

  /**
   * Check services now (POST /api/v1/services:check)
   *
   * As the list, once each of their checks has been made again; one that takes more than two seconds is
   * shown as it was, with its last_checked_at.
   */
  readonly checkServices: {
    readonly request: {
      readonly query?:
        | {
            /** Services of this name only. */
            readonly name?: string | undefined;

            /** Tags that it must have, all of them: separated by commas, or the parameter repeated. */
            readonly tag?: string | undefined;

            /**
             * passing only while every check has found it reachable; critical before the first time, and after
             * failures.
             */
            readonly status?: "passing" | "critical" | undefined;

            /** Services of this run. */
            readonly run_id?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: ServicePage;
  };

  /**
   * Remove what is not kept any more (POST /api/v1/system/gc)
   *
   * Ended runs that are older than they are kept, or more than fit, with everything of theirs; and what
   * lies in SVC_HOME without belonging to anything. The same happens by itself every hour. Answers when
   * it is done, after others that are under way; it goes on when the caller leaves.
   */
  readonly collectGarbage: {
    readonly request: { readonly body: CollectGarbage };
    readonly answer: CollectReport;
  };

  /**
   * Pause, resume or cancel a run, or change its priority (PATCH /api/v1/runs/{run_id})
   *
   * Pausing stops dispatch; a task that is running may finish. Cancelling ends running commands;
   * external actions already performed are not reversed. A new priority is of what waits already, too.
   * Asking for what the run already is changes nothing.
   */
  readonly controlRun: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly body: ControlRun;
    };
    readonly answer: Run;
  };

  /**
   * Count the logs of a run over time (GET /api/v1/runs/{run_id}/logs/histogram)
   *
   * By level, in buckets of one length. An answer counts a bounded part of the log, some ten thousand
   * events, oldest first; next_page_token counts on. To count what came since, ask with since_id behind
   * last_event_id: the buckets are as if all was counted.
   */
  readonly countRunLogs: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /** The least urgent level to show. */
            readonly level?: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | undefined;

            /** Of this agent only. */
            readonly agent_id?: string | undefined;

            /** Of this stream only. */
            readonly stream?: "stdout" | "stderr" | "worker" | "runtime" | undefined;

            /** Records whose message has this text in it; upper and lower case are the same. */
            readonly text?: string | undefined;

            /** Records of this time or later. */
            readonly since?: string | undefined;

            /** Records before this time. */
            readonly until?: string | undefined;

            /** Records of this event or later. */
            readonly since_id?: number | undefined;

            /** Records before this event. */
            readonly until_id?: number | undefined;

            /** Most buckets of the whole count. */
            readonly buckets?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: LogHistogram;
  };

  /**
   * Keep instances of a service graph running (POST /api/v1/deployments)
   *
   * Each instance is a run whose trigger has kind deployment and the deployment's id. They are started
   * at once; follow the events, or the status.
   */
  readonly createDeployment: {
    readonly request: { readonly body: CreateDeployment };
    readonly answer: Deployment;
  };

  /**
   * Create a job (POST /api/v1/jobs)
   *
   * Keep job_id and ETag: updates and the deletion need both. A job of a blueprint that is not added is
   * `preparing` until its addition has ended, and its ETag changes then.
   */
  readonly createJob: { readonly request: { readonly body: CreateJob }; readonly answer: Job };

  /**
   * Start a run of a job (POST /api/v1/jobs/{job_id}/runs)
   *
   * Accepted as soon as it is on disk; the run is prepared and executed afterwards. Acceptance is not
   * completion: follow the run's event stream, get the run again, or wait for its end with `Prefer:
   * wait=N`, which is then answered with 200.
   */
  readonly createRun: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly headers?:
        | {
            /**
             * wait=N (RFC 7240): answer when what was started has ended, or after N seconds (60 at most) as
             * without it. A value that is no whole number, and every other preference, is ignored.
             */
            readonly prefer?: string | undefined;

            /**
             * W3C trace context of the caller: the run belongs to this trace, and its span is a child of the
             * caller's. One that is malformed is ignored, and the run gets a trace of its own.
             */
            readonly traceparent?: string | undefined;
          }
        | undefined;
      readonly body: CreateRun;
    };
    readonly answer: Run;
  };

  /**
   * Start many runs of a job (POST /api/v1/jobs/{job_id}/runs:batch)
   *
   * Up to 1,000 runs, accepted in one commit. Each item is what starts a single run, and is answered
   * with the status that it would have had alone; a refused one does not affect the others. The
   * Idempotency-Key covers the whole batch. With `Prefer: wait=N` each item whose run has ended carries
   * it.
   */
  readonly createRuns: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly headers?:
        | {
            /**
             * wait=N (RFC 7240): answer when what was started has ended, or after N seconds (60 at most) as
             * without it. A value that is no whole number, and every other preference, is ignored.
             */
            readonly prefer?: string | undefined;

            /**
             * W3C trace context of the caller: the run belongs to this trace, and its span is a child of the
             * caller's. One that is malformed is ignored, and the run gets a trace of its own.
             */
            readonly traceparent?: string | undefined;
          }
        | undefined;
      readonly body: CreateRuns;
    };
    readonly answer: StartedRuns;
  };

  /**
   * Start runs of a job by a rule (POST /api/v1/schedules)
   *
   * Each due time starts one run, also when the program was killed in the middle. What the runs are
   * given is checked now, as if one began. A run's trigger has kind schedule, or event, and the
   * schedule's id. A webhook's secret is in this answer alone, not in that of a repeated request.
   */
  readonly createSchedule: { readonly request: { readonly body: CreateSchedule }; readonly answer: Schedule };

  /**
   * Make a link (POST /api/v1/sessions)
   *
   * A link signs a browser in to the console, once, within a minute. A share shows one run to everybody
   * who has it, for reading alone.
   */
  readonly createSession: { readonly request: { readonly body: NewSession }; readonly answer: Session };

  /**
   * Get an address that may be read once (POST /console/tickets)
   *
   * For what a browser asks for by itself, such as a download: it sends no key with that. Streams take
   * none.
   */
  readonly createTicket: { readonly request: { readonly body: TicketRequest }; readonly answer: Ticket };

  /** Delete a bundle that no job uses (DELETE /api/v1/bundles/{bundle_id}) */
  readonly deleteBundle: {
    readonly request: {
      readonly path: {
        /** The bundle's id. */
        readonly bundle_id: string;
      };
    };
    readonly answer: undefined;
  };

  /**
   * Delete a deployment: its instances are drained and stopped (DELETE
   * /api/v1/deployments/{deployment_id})
   *
   * The jobs of its versions stay, with their runs.
   */
  readonly deleteDeployment: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
    };
    readonly answer: undefined;
  };

  /** Delete a job with its runs, their events and files (DELETE /api/v1/jobs/{job_id}) */
  readonly deleteJob: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly query?:
        | {
            /** Cancels open runs first. */
            readonly force?: boolean | undefined;
          }
        | undefined;
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
    };
    readonly answer: undefined;
  };

  /**
   * Delete a model's registration (DELETE /api/v1/models/{model_id})
   *
   * Refused while it is installed, or a blueprint has brought it along.
   */
  readonly deleteModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
    };
    readonly answer: undefined;
  };

  /**
   * Remove an installation that nothing needs (DELETE
   * /api/v1/models/{model_id}/installations/{installation_id})
   *
   * At once, and on the node that is asked alone. To see first what needs it, or to remove it all the
   * same, there is POST /models/{model_id}/remove.
   */
  readonly deleteModelInstallation: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;

        /** The installation's id. */
        readonly installation_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
    };
    readonly answer: undefined;
  };

  /** Delete a schedule; its runs stay (DELETE /api/v1/schedules/{schedule_id}) */
  readonly deleteSchedule: {
    readonly request: {
      readonly path: {
        /** The schedule's id. */
        readonly schedule_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
    };
    readonly answer: undefined;
  };

  /**
   * Start a run of a schedule now (POST /api/v1/schedules/{schedule_id}/dispatch)
   *
   * Whatever its status, its rule and its other runs.
   */
  readonly dispatchSchedule: {
    readonly request: {
      readonly path: {
        /** The schedule's id. */
        readonly schedule_id: string;
      };
    };
    readonly answer: ScheduleDispatch;
  };

  /**
   * Take a node out of work (POST /api/v1/nodes/{node_id}/drain)
   *
   * It takes no jobs and no attempts any more. Attempts that run may end until the deadline; then they
   * are ended, which does not count against max_attempts. Each job goes to another node once none of its
   * attempts runs, and goes on there where it stopped. Ends with undrain, or when the node's program
   * starts again. A node learns of it with its next heartbeat, a few seconds later.
   */
  readonly drainNode: {
    readonly request: {
      readonly path: {
        /** The node's id. */
        readonly node_id: string;
      };
      readonly body: DrainNode;
    };
    readonly answer: NodeDrain;
  };

  /**
   * Tell of an event (POST /api/v1/events)
   *
   * Schedules of kind event react to it. The event, and the runs that it starts, are on disk when it is
   * answered.
   */
  readonly emitEvent: { readonly request: { readonly body: EmitEvent }; readonly answer: TriggerEvent };

  /**
   * End a session or a link (DELETE /api/v1/sessions/{session_id})
   *
   * With a share, the sessions end that it has opened. Other gateways notice within five seconds.
   */
  readonly endSession: {
    readonly request: {
      readonly path: {
        /** The session's id. */
        readonly session_id: string;
      };
    };
    readonly answer: undefined;
  };

  /** Stop a rollout as failed (POST /api/v1/deployments/{deployment_id}/fail) */
  readonly failDeployment: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
      readonly body: FailDeployment;
    };
    readonly answer: Deployment;
  };

  /** Get a blueprint (GET /api/v1/blueprints/{blueprint_id}) */
  readonly getBlueprint: {
    readonly request: {
      readonly path: {
        /** The blueprint's id. */
        readonly blueprint_id: string;
      };
    };
    readonly answer: BlueprintDetail;
  };

  /** Get a bundle (GET /api/v1/bundles/{bundle_id}) */
  readonly getBundle: {
    readonly request: {
      readonly path: {
        /** The bundle's id. */
        readonly bundle_id: string;
      };
    };
    readonly answer: Bundle;
  };

  /**
   * Get a deployment (GET /api/v1/deployments/{deployment_id})
   *
   * The ETag changes with the deployment and with its instances; If-Match looks at what owners have
   * changed alone.
   */
  readonly getDeployment: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
      readonly headers?:
        | {
            /** The ETag of an answer that the client still has. */
            readonly "if-none-match"?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Deployment;
  };

  /**
   * Get a trigger event (GET /api/v1/events/{event_id})
   *
   * With what schedules have made of it by now.
   */
  readonly getEvent: {
    readonly request: {
      readonly path: {
        /** The event's id. */
        readonly event_id: string;
      };
    };
    readonly answer: TriggerEvent;
  };

  /**
   * See whether the gateway lives (GET /api/v1/health)
   *
   * Needs no authentication. 503 with the same body while the store takes no writes.
   */
  readonly getHealth: { readonly request: Nothing; readonly answer: Health };

  /** Get one request to people (GET /api/v1/runs/{run_id}/human/{request_id}) */
  readonly getHumanRequest: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;

        /** The request's id. */
        readonly request_id: string;
      };
    };
    readonly answer: HumanRequest;
  };

  /**
   * Get a job (GET /api/v1/jobs/{job_id})
   *
   * The ETag changes with the definition and with its runs; If-Match looks at the definition alone.
   */
  readonly getJob: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly query?:
        | {
            /** compact, the default, or full, which adds manifest, graph, recent runs and events, and services. */
            readonly view?: "compact" | "full" | undefined;

            /** The same as view. */
            readonly include?: "compact" | "full" | undefined;
          }
        | undefined;
      readonly headers?:
        | {
            /** The ETag of an answer that the client still has. */
            readonly "if-none-match"?: string | undefined;
          }
        | undefined;
    };
    readonly answer: JobDetail;
  };

  /**
   * See what agents were in a job's newest runs (GET /api/v1/jobs/{job_id}/grid)
   *
   * Agents by runs. A page costs one read of the rows it shows, however long the histories are, and has
   * fewer agents than page_size where that would be more than 2,000 states. Rows are the agents of the
   * job's graph as it is now: none while the job waits for its blueprint.
   */
  readonly getJobGrid: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly query?:
        | {
            /** How many of the newest runs. */
            readonly runs?: number | undefined;

            /** Only agents with this text in their id or role, whatever its case. */
            readonly q?: string | undefined;

            /** Only agents that were this in one of the runs. */
            readonly state?: "failed" | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: JobGrid;
  };

  /**
   * Read metrics (GET /api/v1/metrics)
   *
   * JSON, unless the Accept header prefers text/plain or application/openmetrics-text, or
   * format=prometheus asks for Prometheus's text.
   */
  readonly getMetrics: {
    readonly request: {
      readonly query?:
        | {
            /** Goes before the Accept header. */
            readonly format?: "json" | "prometheus" | undefined;
          }
        | undefined;
    };
    readonly answer: Metrics;
  };

  /**
   * Get a model (GET /api/v1/models/{model_id})
   *
   * The ETag changes with the model and its installations; If-Match looks at what its owner has changed
   * alone.
   */
  readonly getModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly headers?:
        | {
            /** The ETag of an answer that the client still has. */
            readonly "if-none-match"?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Model;
  };

  /** Get an installation of a model (GET /api/v1/models/{model_id}/installations/{installation_id}) */
  readonly getModelInstallation: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;

        /** The installation's id. */
        readonly installation_id: string;
      };
      readonly headers?:
        | {
            /** The ETag of an answer that the client still has. */
            readonly "if-none-match"?: string | undefined;
          }
        | undefined;
    };
    readonly answer: ModelInstallation;
  };

  /** See how a model is served (GET /api/v1/models/{model_id}/serving) */
  readonly getModelServing: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
    };
    readonly answer: ModelServing;
  };

  /** Get a node (GET /api/v1/nodes/{node_id}) */
  readonly getNode: {
    readonly request: {
      readonly path: {
        /** The node's id. */
        readonly node_id: string;
      };
    };
    readonly answer: Node;
  };

  /** See how far a node is drained (GET /api/v1/nodes/{node_id}/drain) */
  readonly getNodeDrain: {
    readonly request: {
      readonly path: {
        /** The node's id. */
        readonly node_id: string;
      };
    };
    readonly answer: NodeDrain;
  };

  /**
   * Summarise a run (GET /api/v1/runs/{run_id}/observability-summary)
   *
   * What happened in a run, in numbers, and where to read on (svc.observability_summary.v1). It is
   * counted while the run goes on: asking for it costs as little as asking for the run.
   */
  readonly getObservabilitySummary: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
    };
    readonly answer: ObservabilitySummary;
  };

  /**
   * Get an operation (GET /api/v1/operations/{operation_id})
   *
   * Where the Location of a request points that began one.
   */
  readonly getOperation: {
    readonly request: {
      readonly path: {
        /** The operation's id. */
        readonly operation_id: string;
      };
    };
    readonly answer: Operation;
  };

  /** See the machines' resources and their limits (GET /api/v1/resource) */
  readonly getResource: {
    readonly request: {
      readonly headers?:
        | {
            /** The ETag of an answer that the client still has. */
            readonly "if-none-match"?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Resource;
  };

  /** Get a run (GET /api/v1/runs/{run_id}) */
  readonly getRun: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
    };
    readonly answer: Run;
  };

  /**
   * Download an artifact (GET /api/v1/runs/{run_id}/artifacts/{artifact_id})
   *
   * An artifact's bytes, as a download under its own name and content type. The ETag is their SHA-256;
   * one range of bytes can be asked for.
   */
  readonly getRunArtifact: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;

        /** The artifact's id. */
        readonly artifact_id: string;
      };
      readonly headers?:
        | {
            /** One range of bytes; of several, all is sent. */
            readonly range?: string | undefined;

            /** The ETag that the range is meant for. */
            readonly "if-range"?: string | undefined;

            /** ETags that the client has. */
            readonly "if-none-match"?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Response;
  };

  /**
   * Look at a run (GET /api/v1/runs/{run_id}/dashboard)
   *
   * A page for people: the run's status, its graph, events, outputs, and what went wrong, live while it
   * goes on.
   */
  readonly getRunDashboard: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
    };
    readonly answer: Response;
  };

  /** Get one dead letter (GET /api/v1/runs/{run_id}/dead-letters/{dead_letter_id}) */
  readonly getRunDeadLetter: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;

        /** The dead letter's id. */
        readonly dead_letter_id: string;
      };
    };
    readonly answer: DeadLetter;
  };

  /**
   * Get the result of a run (GET /api/v1/runs/{run_id}/result)
   *
   * Answers at any time: a run that has not ended has no result yet, which its status shows. Review
   * warnings and outputs before you take a completed run for a correct result.
   */
  readonly getRunResult: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
    };
    readonly answer: RunResult;
  };

  /**
   * Check the machine, with a fix for each problem (GET /api/v1/runtime/doctor)
   *
   * The disk, the store, and the programs that workers are run with. Each check is bounded in time; a
   * result is good for a few seconds.
   */
  readonly getRuntimeDoctor: { readonly request: Nothing; readonly answer: Doctor };

  /**
   * See whether the runtime takes work (GET /api/v1/runtime/health)
   *
   * 503 with the same body while it does not.
   */
  readonly getRuntimeHealth: { readonly request: Nothing; readonly answer: RuntimeHealth };

  /** See what the runtime is doing (GET /api/v1/runtime/status) */
  readonly getRuntimeStatus: { readonly request: Nothing; readonly answer: RuntimeStatus };

  /**
   * Get a schedule (GET /api/v1/schedules/{schedule_id})
   *
   * The ETag changes with the schedule and with what has become of its due times; If-Match looks at the
   * schedule alone.
   */
  readonly getSchedule: {
    readonly request: {
      readonly path: {
        /** The schedule's id. */
        readonly schedule_id: string;
      };
      readonly headers?:
        | {
            /** The ETag of an answer that the client still has. */
            readonly "if-none-match"?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Schedule;
  };

  /** Get a session or a link (GET /api/v1/sessions/{session_id}) */
  readonly getSession: {
    readonly request: {
      readonly path: {
        /** The session's id. */
        readonly session_id: string;
      };
    };
    readonly answer: Session;
  };

  /**
   * See the settings in use (GET /api/v1/system/settings)
   *
   * Of the program that answers: every variable with its value, where the value is from, and what it
   * means. Secrets are masked.
   */
  readonly getSettings: { readonly request: Nothing; readonly answer: Settings };

  /** Ask whether a browser has to sign in (GET /console/session) */
  readonly getSignIn: { readonly request: Nothing; readonly answer: SignInState };

  /** See the cluster in a few numbers (GET /api/v1/system/summary) */
  readonly getSystemSummary: {
    readonly request: {
      readonly query?:
        | {
            /** How many hours to count ended runs for; none without it. */
            readonly hours?: number | undefined;
          }
        | undefined;
    };
    readonly answer: SystemSummary;
  };

  /**
   * See how far a job's run has come (GET /api/v1/jobs/{job_id}/workflow-progress)
   *
   * Of the job's latest run, or of the one that run_id names. A job without runs has none.
   */
  readonly getWorkflowProgress: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly query?:
        | {
            /** One of the job's runs; the latest one without it. */
            readonly run_id?: string | undefined;
          }
        | undefined;
    };
    readonly answer: WorkflowProgress;
  };

  /**
   * Install a model on this node (POST /api/v1/models/{model_id}/install)
   *
   * Brings its content into SVC_HOME, or has the Ollama-compatible server pull it. Follow the operation
   * at Location; it goes on over restarts, and a download goes on where it was cut. Of a model that is
   * installed, and of content that another model or another node has, nothing is fetched again. Room on
   * the disk is looked for first.
   */
  readonly installModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly body: InstallModel;
    };
    readonly answer: Operation;
  };

  /**
   * Make this program a node (POST /api/v1/system/cluster/nodes:join)
   *
   * For a program without SVC_DATABASE_URL whose SVC_HOME is empty. It asks a node for what it needs,
   * keeps it in SVC_HOME, and starts again as the node that was added, without ending its process; the
   * operation goes on there under the same id. Asked again with the token of the node that it is, it
   * answers the operation by which it has joined.
   */
  readonly joinCluster: { readonly request: { readonly body: JoinCluster }; readonly answer: Operation };

  /**
   * Launch a blueprint (POST /api/v1/blueprints/{blueprint_id}/runs)
   *
   * Makes a job of the blueprint and starts a run of it. A blueprint that is not added is added first;
   * the run waits for that. One whose folder has changed since it was added runs as it was added, and
   * warnings says so. With `Prefer: wait=N` the answer is the ended run, with 200.
   */
  readonly launchBlueprint: {
    readonly request: {
      readonly path: {
        /** The blueprint's id. */
        readonly blueprint_id: string;
      };
      readonly headers?:
        | {
            /**
             * wait=N (RFC 7240): answer when what was started has ended, or after N seconds (60 at most) as
             * without it. A value that is no whole number, and every other preference, is ignored.
             */
            readonly prefer?: string | undefined;

            /**
             * W3C trace context of the caller: the run belongs to this trace, and its span is a child of the
             * caller's. One that is malformed is ignored, and the run gets a trace of its own.
             */
            readonly traceparent?: string | undefined;
          }
        | undefined;
      readonly body: LaunchBlueprint;
    };
    readonly answer: Run | LaunchedBlueprint;
  };

  /**
   * Have this node leave (POST /api/v1/system/cluster/nodes:leave)
   *
   * Drains the node that is asked, then its program ends, as on SIGTERM. Another node sees the operation
   * to its end. The program may be started again, and is the same node then. An undrain takes it back,
   * as for a removal.
   */
  readonly leaveCluster: { readonly request: { readonly body: LeaveCluster }; readonly answer: Operation };

  /**
   * List what all runs ask people (GET /api/v1/human)
   *
   * Oldest first; those that wait for an answer, unless the status says otherwise.
   */
  readonly listAllHumanRequests: {
    readonly request: {
      readonly query?:
        | {
            /** pending, without it: what can be answered, so only of runs that have not ended. */
            readonly status?: "pending" | "answered" | "timed_out" | undefined;

            /** Of this run only. */
            readonly run_id?: string | undefined;

            /** Of the runs of this job only. */
            readonly job_id?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: HumanRequestPage;
  };

  /**
   * List blueprints (GET /api/v1/blueprints)
   *
   * What the folders of SVC_BLUEPRINT_CATALOG hold. A broken one is listed as broken, and hides no
   * other.
   */
  readonly listBlueprints: {
    readonly request: {
      readonly query?:
        | {
            /** Only those of this category. */
            readonly category?: string | undefined;

            /** Only those with this text in their id, name, description or a tag, whatever its case. */
            readonly q?: string | undefined;

            /**
             * available: only in the catalog. adding, removing: an operation is under way. added: runs start at
             * once. failed: errors says why its addition did. broken: its folder has mistakes, which errors lists.
             */
            readonly state?: BlueprintState | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: BlueprintPage;
  };

  /** List bundles (GET /api/v1/bundles) */
  readonly listBundles: {
    readonly request: {
      readonly query?:
        | {
            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: BundlePage;
  };

  /**
   * List the messages of all runs that were not processed (GET /api/v1/dead-letters)
   *
   * Newest first; the open ones, unless the status says otherwise.
   */
  readonly listDeadLetters: {
    readonly request: {
      readonly query?:
        | {
            /** open, without it: those that were not sent again. */
            readonly status?: "open" | "retried" | undefined;

            /** Why nobody has it. */
            readonly reason?:
              | "ttl_expired"
              | "target_gone"
              | "mailbox_full"
              | "processing_failed"
              | undefined;

            /** Of this run only. */
            readonly run_id?: string | undefined;

            /** Of the runs of this job only. */
            readonly job_id?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: DeadLetterPage;
  };

  /** List deployments (GET /api/v1/deployments) */
  readonly listDeployments: {
    readonly request: {
      readonly query?:
        | {
            /** Deployments in this status only. */
            readonly status?:
              | "pending"
              | "running"
              | "paused"
              | "awaiting_promotion"
              | "succeeded"
              | "failed"
              | "rolled_back"
              | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: DeploymentPage;
  };

  /**
   * List trigger events (GET /api/v1/events)
   *
   * The newest million of the last seven days.
   */
  readonly listEvents: {
    readonly request: {
      readonly query?:
        | {
            /** What has happened: lower case, digits, dots, underscores and hyphens. */
            readonly type?: string | undefined;

            /** Where it has happened. */
            readonly source?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: TriggerEventPage;
  };

  /**
   * List what a run asks people (GET /api/v1/runs/{run_id}/human)
   *
   * Oldest first. status=pending: what waits for an answer.
   */
  readonly listHumanRequests: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /** pending: nobody has answered. timed_out: the time was over, and the default action was taken. */
            readonly status?: "pending" | "answered" | "timed_out" | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: HumanRequestPage;
  };

  /**
   * List the messages of a job's run that were not processed (GET /api/v1/jobs/{job_id}/dead-letters)
   *
   * Newest first. Of the job's latest run, or of the one that run_id names. A job without runs has none.
   * Later pages stay with the run of the first one.
   */
  readonly listJobDeadLetters: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly query?:
        | {
            /** One of the job's runs; the latest one without it. */
            readonly run_id?: string | undefined;

            /** Whether it was sent again. */
            readonly status?: "open" | "retried" | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: DeadLetterPage;
  };

  /**
   * List the events of a job's run (GET /api/v1/jobs/{job_id}/events)
   *
   * Oldest first. Of the job's latest run, or of the one that run_id names. A job without runs has none.
   * Later pages stay with the run of the first one.
   */
  readonly listJobEvents: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly query?:
        | {
            /** One of the job's runs; the latest one without it. */
            readonly run_id?: string | undefined;

            /** Events of these types only, separated by commas. */
            readonly type?: string | undefined;

            /** Of this agent only. */
            readonly agent_id?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: RunEventPage;
  };

  /** List the runs of a job (GET /api/v1/jobs/{job_id}/runs) */
  readonly listJobRuns: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly query?:
        | {
            /**
             * In one of these states, separated by commas: pending, queued, running, paused, completed, failed,
             * cancelled. In any without it.
             */
            readonly status?: string | undefined;

            /** Started by this only. */
            readonly trigger?: "api" | "blueprint" | "schedule" | "event" | "deployment" | undefined;

            /** Runs that repeat this one only. */
            readonly rerun_of?: string | undefined;

            /** Accepted at this time or later; of schedules, due then. */
            readonly since?: string | undefined;

            /** Accepted before this time; of schedules, due then. */
            readonly until?: string | undefined;

            /**
             * With this text in its id, its job's id or name, or its blueprint's id; upper and lower case are the
             * same. It is looked for in 2,000 runs for each page, which may be short, or empty, and still not be
             * the last one. A whole id of a run or a job is found at once, and alone.
             */
            readonly q?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: RunPage;
  };

  /** List jobs (GET /api/v1/jobs) */
  readonly listJobs: {
    readonly request: {
      readonly query?:
        | {
            /** Most items of the whole walk, over all its pages. */
            readonly limit?: number | undefined;

            /** false leaves out jobs whose latest run has ended. */
            readonly include_terminal?: boolean | undefined;

            /** Jobs made from this blueprint only. */
            readonly blueprint_id?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: JobPage;
  };

  /** List a model's installations (GET /api/v1/models/{model_id}/installations) */
  readonly listModelInstallations: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly query?:
        | {
            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: ModelInstallationPage;
  };

  /** List models (GET /api/v1/models) */
  readonly listModels: {
    readonly request: {
      readonly query?:
        | {
            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: ModelPage;
  };

  /** List the nodes (GET /api/v1/nodes) */
  readonly listNodes: {
    readonly request: {
      readonly query?:
        | {
            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;

            /**
             * Only nodes of this name: those that have not left; if there is none, those that have; else the one
             * that was removed last.
             */
            readonly name?: string | undefined;
          }
        | undefined;
    };
    readonly answer: NodePage;
  };

  /**
   * List operations (GET /api/v1/operations)
   *
   * Newest first. Those that ended more than SVC_RETENTION_DAYS ago are gone.
   */
  readonly listOperations: {
    readonly request: {
      readonly query?:
        | {
            /** Only those about this blueprint, this node, or this model (`model:` and its id). */
            readonly target?: string | undefined;

            /** The last two are final. */
            readonly status?: OperationStatus | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: OperationPage;
  };

  /**
   * List the artifacts of a run (GET /api/v1/runs/{run_id}/artifacts)
   *
   * Its evidence under stable ids (kind evidence: run, config, inputs, result, final_artifact,
   * observability_summary_json, events_jsonl, logs_jsonl, errors_jsonl, timeline_jsonl, timeline_json,
   * and full segments such as events_jsonl_001), then every file that its workers left in
   * SVC_OUTPUT_DIR, outputs included. While the run goes on, evidence grows; what is listed is one
   * reading of it.
   */
  readonly listRunArtifacts: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /** false leaves out the run's evidence, and spares the making of it. */
            readonly evidence?: boolean | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: ArtifactPage;
  };

  /**
   * List the messages of a run that were not processed (GET /api/v1/runs/{run_id}/dead-letters)
   *
   * Newest first.
   */
  readonly listRunDeadLetters: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /** Whether it was sent again. */
            readonly status?: "open" | "retried" | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: DeadLetterPage;
  };

  /**
   * List the events of a run (GET /api/v1/runs/{run_id}/events)
   *
   * The whole history, oldest first. The last page of a run that goes on ends with what there is.
   */
  readonly listRunEvents: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /** Events of these types only, separated by commas. */
            readonly type?: string | undefined;

            /** Of this agent only. */
            readonly agent_id?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: RunEventPage;
  };

  /**
   * Read the logs of a run (GET /api/v1/runs/{run_id}/logs)
   *
   * What its workers print and report, and what the runtime says of attempts, agents and the run when
   * something is not as it should be. order=desc reads the newest records first, however long the log
   * is.
   */
  readonly listRunLogs: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /** The least urgent level to show. */
            readonly level?: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | undefined;

            /** Of this agent only. */
            readonly agent_id?: string | undefined;

            /** Of this stream only. */
            readonly stream?: "stdout" | "stderr" | "worker" | "runtime" | undefined;

            /** Records whose message has this text in it; upper and lower case are the same. */
            readonly text?: string | undefined;

            /** Records of this time or later. */
            readonly since?: string | undefined;

            /** Records before this time. */
            readonly until?: string | undefined;

            /** Records of this event or later. */
            readonly since_id?: number | undefined;

            /** Records before this event. */
            readonly until_id?: number | undefined;

            /** asc, the default: oldest first. desc: newest first, and later pages go on to older ones. */
            readonly order?: "asc" | "desc" | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: LogPage;
  };

  /**
   * List the outputs of a run (GET /api/v1/runs/{run_id}/outputs)
   *
   * The artifacts that the run was for: those that its manifest or a worker's result names, and
   * final_artifact.* Of several that one producer has made under one name, the newest; older ones are
   * artifacts.
   */
  readonly listRunOutputs: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: OutputPage;
  };

  /**
   * Read the timeline of a run (GET /api/v1/runs/{run_id}/timeline)
   *
   * The steps of the run, its agents, their tasks and attempts, as records of spans (svc.timeline.v1).
   */
  readonly listRunTimeline: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: TimelinePage;
  };

  /**
   * List runs (GET /api/v1/runs)
   *
   * Newest first.
   */
  readonly listRuns: {
    readonly request: {
      readonly query?:
        | {
            /** Runs of this job only. */
            readonly job_id?: string | undefined;

            /** Runs of the jobs of this blueprint only. */
            readonly blueprint_id?: string | undefined;

            /**
             * In one of these states, separated by commas: pending, queued, running, paused, completed, failed,
             * cancelled. In any without it.
             */
            readonly status?: string | undefined;

            /** Started by this only. */
            readonly trigger?: "api" | "blueprint" | "schedule" | "event" | "deployment" | undefined;

            /** Runs that repeat this one only. */
            readonly rerun_of?: string | undefined;

            /** Accepted at this time or later; of schedules, due then. */
            readonly since?: string | undefined;

            /** Accepted before this time; of schedules, due then. */
            readonly until?: string | undefined;

            /**
             * With this text in its id, its job's id or name, or its blueprint's id; upper and lower case are the
             * same. It is looked for in 2,000 runs for each page, which may be short, or empty, and still not be
             * the last one. A whole id of a run or a job is found at once, and alone.
             */
            readonly q?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: RunPage;
  };

  /** List schedules (GET /api/v1/schedules) */
  readonly listSchedules: {
    readonly request: {
      readonly query?:
        | {
            /** Schedules of this kind only. */
            readonly kind?: "cron" | "delayed" | "event" | undefined;

            /** Schedules in this status only. */
            readonly status?: "active" | "paused" | "completed" | "failed" | undefined;

            /** Schedules that start runs of this job only. */
            readonly job_id?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: SchedulePage;
  };

  /**
   * List services (GET /api/v1/services)
   *
   * The services that open runs offer right now, on all nodes, by name, whether their checks pass or
   * not.
   */
  readonly listServices: {
    readonly request: {
      readonly query?:
        | {
            /** Services of this name only. */
            readonly name?: string | undefined;

            /** Tags that it must have, all of them: separated by commas, or the parameter repeated. */
            readonly tag?: string | undefined;

            /**
             * passing only while every check has found it reachable; critical before the first time, and after
             * failures.
             */
            readonly status?: "passing" | "critical" | undefined;

            /** Services of this run. */
            readonly run_id?: string | undefined;

            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;
          }
        | undefined;
    };
    readonly answer: ServicePage;
  };

  /** List sessions and links (GET /api/v1/sessions) */
  readonly listSessions: {
    readonly request: {
      readonly query?:
        | {
            /**
             * Items in a page, 1 to 200. Large items make shorter pages: what tells the last page is its
             * next_page_token.
             */
            readonly page_size?: number | undefined;

            /** next_page_token of the page before. Good for 24 hours, for the same query. */
            readonly page_token?: string | undefined;

            /** Only of this kind. */
            readonly kind?: "session" | "link" | "share" | undefined;

            /** Only those that show this run alone. */
            readonly run_id?: string | undefined;
          }
        | undefined;
    };
    readonly answer: SessionPage;
  };

  /**
   * Ask a served model, in the OpenAI protocol (POST /api/v1/llm/v1/chat/completions)
   *
   * For clients of the OpenAI protocol, with {gateway}/api/v1/llm/v1 as their base URL. The request's
   * model is the model_id of one that is served; everything else is passed on to it, and its answer
   * passed back as it is. Errors have the protocol's shape.
   */
  readonly llmChatCompletions: {
    readonly request: { readonly body: LlmRequest };
    readonly answer: LlmAnswer;
  };

  /**
   * Let a served model go on with a text, in the OpenAI protocol (POST /api/v1/llm/v1/completions)
   *
   * For clients of the OpenAI protocol, with {gateway}/api/v1/llm/v1 as their base URL. The request's
   * model is the model_id of one that is served; everything else is passed on to it, and its answer
   * passed back as it is. Errors have the protocol's shape.
   */
  readonly llmCompletions: { readonly request: { readonly body: LlmRequest }; readonly answer: LlmAnswer };

  /**
   * Make embeddings with a served model, in the OpenAI protocol (POST /api/v1/llm/v1/embeddings)
   *
   * For clients of the OpenAI protocol, with {gateway}/api/v1/llm/v1 as their base URL. The request's
   * model is the model_id of one that is served; everything else is passed on to it, and its answer
   * passed back as it is. Errors have the protocol's shape.
   */
  readonly llmEmbeddings: { readonly request: { readonly body: LlmRequest }; readonly answer: LlmAnswer };

  /** List the models that are served, in the OpenAI protocol (GET /api/v1/llm/v1/models) */
  readonly llmListModels: { readonly request: Nothing; readonly answer: LlmModelList };

  /**
   * Pause a rollout (POST /api/v1/deployments/{deployment_id}/pause)
   *
   * No instance of the new version is started or begins to serve until it is resumed; those that serve
   * go on.
   */
  readonly pauseDeployment: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
    };
    readonly answer: Deployment;
  };

  /** Pause every open run of a job (POST /api/v1/jobs/{job_id}/pause) */
  readonly pauseJob: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
    };
    readonly answer: JobControl;
  };

  /**
   * Pause a schedule (POST /api/v1/schedules/{schedule_id}/pause)
   *
   * No run is started until it is resumed. Runs that were started go on.
   */
  readonly pauseSchedule: {
    readonly request: {
      readonly path: {
        /** The schedule's id. */
        readonly schedule_id: string;
      };
    };
    readonly answer: Schedule;
  };

  /**
   * Let a rollout go on behind its canaries, or its second set (POST
   * /api/v1/deployments/{deployment_id}/promote)
   *
   * A deployment that awaits its promotion goes on to all instances.
   */
  readonly promoteDeployment: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
    };
    readonly answer: Deployment;
  };

  /**
   * Send a signed event (POST /hooks/{token})
   *
   * For other programs: the JSON of 256 KiB at most becomes the payload of an event of the schedule's
   * type. Signed as the schedule's webhook says, in place of an API token. The same again within 24
   * hours gets the first answer.
   */
  readonly receiveWebhook: {
    readonly request: {
      readonly path: {
        /** The end of the webhook's path. */
        readonly token: string;
      };
    };
    readonly answer: WebhookEvent;
  };

  /**
   * Compare a node with its jobs (POST /api/v1/nodes/{node_id}/reconcile)
   *
   * What the node has (processes of commands, attempts, their folders, ports of dashboards, services) is
   * compared with what open jobs say. A difference is listed when two looks, a second apart, have found
   * it; with `fix` it is fixed then. What attempts use that run, or begin, is never touched. Any node
   * may be asked about any other.
   */
  readonly reconcileNode: {
    readonly request: {
      readonly path: {
        /** The node's id. */
        readonly node_id: string;
      };
      readonly body: ReconcileNode;
    };
    readonly answer: Reconciliation;
  };

  /**
   * Update a model to what its source has now (POST /api/v1/models/{model_id}/update)
   *
   * What is installed stays until the new content is whole, and the old content until no run uses it.
   */
  readonly refreshModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly body: InstallModel;
    };
    readonly answer: Operation;
  };

  /**
   * Register a model (POST /api/v1/models)
   *
   * Says where it comes from; nothing is fetched before it is installed.
   */
  readonly registerModel: { readonly request: { readonly body: RegisterModel }; readonly answer: Model };

  /**
   * Remove a blueprint (POST /api/v1/blueprints/{blueprint_id}/removals)
   *
   * Deletes what was prepared for it, which adding it again makes anew; the catalog's folder stays. Look
   * at a dry_run first: it ends with just what the removal would then remove. Its package stays while
   * jobs have it, a model while another blueprint has it.
   */
  readonly removeBlueprint: {
    readonly request: {
      readonly path: {
        /** The blueprint's id. */
        readonly blueprint_id: string;
      };
      readonly body: RemoveBlueprint;
    };
    readonly answer: Operation;
  };

  /**
   * Remove a node (POST /api/v1/system/cluster/nodes:remove)
   *
   * Drains the node, then its program ends, and its SVC_HOME is not let in again. A node that is lost is
   * removed at once. POST /nodes/{node_id}/undrain takes a removal back that has not ended: the
   * operation fails with node_stays.
   */
  readonly removeNode: { readonly request: { readonly body: RemoveNode }; readonly answer: Operation };

  /**
   * Remove a volume, with all that is in it (DELETE /api/v1/resource/volumes/{volume})
   *
   * On whatever node of a cluster it is. A command that asks for it later has an empty one. 409
   * conflict: its node does not run.
   */
  readonly removeVolume: {
    readonly request: {
      readonly path: {
        /** The volume's name. */
        readonly volume: string;
      };
    };
    readonly answer: undefined;
  };

  /**
   * Find a service by its name (GET /api/v1/services/{name}/resolve)
   *
   * The newest one of that name, tags and node whose checks pass. Without a node, what listens on the
   * loopback of another machine is not found. What was passing a moment ago may be gone now: be ready
   * for a refused connection, and resolve again.
   */
  readonly resolveService: {
    readonly request: {
      readonly path: {
        /** The service's name. */
        readonly name: string;
      };
      readonly query?:
        | {
            /** Tags that it must have, all of them: separated by commas, or the parameter repeated. */
            readonly tag?: string | undefined;

            /** Name or id of the node that it must run on. */
            readonly node?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Service;
  };

  /**
   * Let a paused rollout go on (POST /api/v1/deployments/{deployment_id}/resume)
   *
   * Its deadlines begin anew.
   */
  readonly resumeDeployment: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
    };
    readonly answer: Deployment;
  };

  /** Resume every paused run of a job (POST /api/v1/jobs/{job_id}/resume) */
  readonly resumeJob: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
    };
    readonly answer: JobControl;
  };

  /**
   * Let a paused schedule go on (POST /api/v1/schedules/{schedule_id}/resume)
   *
   * From now on: what was due meanwhile is not made up for.
   */
  readonly resumeSchedule: {
    readonly request: {
      readonly path: {
        /** The schedule's id. */
        readonly schedule_id: string;
      };
    };
    readonly answer: Schedule;
  };

  /**
   * Send a dead letter again (POST /api/v1/runs/{run_id}/dead-letters/{dead_letter_id}/retry)
   *
   * As a new message to the same agent, which may fail again. An agent that had failed for good goes on.
   */
  readonly retryRunDeadLetter: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;

        /** The dead letter's id. */
        readonly dead_letter_id: string;
      };
      readonly body: RetryDeadLetter;
    };
    readonly answer: Retried;
  };

  /**
   * Send every open dead letter of a run again (POST /api/v1/runs/{run_id}/dead-letters/retry)
   *
   * Those that are open now, oldest first. As a new message to the same agent, which may fail again. An
   * agent that had failed for good goes on.
   */
  readonly retryRunDeadLetters: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
    };
    readonly answer: Retried;
  };

  /** Go back to a version (POST /api/v1/deployments/{deployment_id}/rollback) */
  readonly rollbackDeployment: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
      readonly body: RollbackDeployment;
    };
    readonly answer: Deployment;
  };

  /**
   * Serve a model in the OpenAI protocol (POST /api/v1/models/{model_id}/serve)
   *
   * Loads it, or finds the server that has it, and from then on answers requests for it at
   * /api/v1/llm/v1: also after a restart, until it is stopped. What is served already goes on with the
   * new settings. The operation's result has base_url.
   */
  readonly serveModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly body: ServeModel;
    };
    readonly answer: Operation;
  };

  /**
   * Keep a node out of work, or let it work again (POST /api/v1/nodes/{node_id}/maintenance)
   *
   * Enabled, the node is drained within 300 seconds if it was not, and stays without work until this is
   * taken back, also when its program starts again.
   */
  readonly setNodeMaintenance: {
    readonly request: {
      readonly path: {
        /** The node's id. */
        readonly node_id: string;
      };
      readonly body: SetMaintenance;
    };
    readonly answer: NodeDrain;
  };

  /**
   * Set all limits (PUT /api/v1/resource)
   *
   * Limits that are not given are taken back. Otherwise as POST.
   */
  readonly setResourceLimits: {
    readonly request: {
      readonly headers?:
        | {
            /** The ETag that a GET answered; without it, the change is made whatever the limits are. */
            readonly "if-match"?: string | undefined;
          }
        | undefined;
      readonly body: SetResourceLimits;
    };
    readonly answer: Resource;
  };

  /**
   * Sign a browser in (POST /console/session)
   *
   * With the API token, with a link, or with a share. Gives a cookie and a key: a request needs both.
   * The session ends twelve hours after its last use, or with a change of SVC_API_TOKEN.
   */
  readonly signIn: { readonly request: { readonly body: SignIn }; readonly answer: SignedIn };

  /** Sign a browser out (DELETE /console/session) */
  readonly signOut: { readonly request: Nothing; readonly answer: undefined };

  /**
   * Stop serving a model (POST /api/v1/models/{model_id}/stop)
   *
   * Its process ends, and requests under way fail. What is installed stays.
   */
  readonly stopModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
    };
    readonly answer: ModelServing;
  };

  /**
   * Follow a deployment (GET /api/v1/deployments/{deployment_id}/events/stream)
   *
   * Server-sent events: deployment_created, deployment_{status} at each change of the status,
   * deployment_failure, instance_started, instance_health, instance_serving, instance_draining,
   * instance_stopping, instance_ended; deployment_deleting, and deployment_deleted at last. The newest
   * 1000 are kept. Each event's id is its place in the history. Keep the id of each event that you have
   * applied and send it as Last-Event-ID: the stream goes on right behind it. It closes after the
   * terminal event; a reader that already has that one gets 204.
   */
  readonly streamDeploymentEvents: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
    };
    readonly answer: Response;
  };

  /**
   * Follow the lists (GET /api/v1/stream)
   *
   * Server-sent events for pages that show lists, of all nodes. A `change` is {topic, id, changes}: what
   * the record is now, and never a backlog of what it was; of one record there are ten a second at most.
   * Of `runs`, changes is the run without inputs, config_overrides, result and links; null: it is gone.
   * Of `operations`, the operation. Of `human`, `dead-letters` and `services`, {run_id, status}:
   * pending, answered or timed_out; open or retried; registered, passing, critical or deregistered. Of
   * `deployments` and `schedules`, {}: read it again. A `reset` comes first on a new stream, and when so
   * much has changed, or has been missed, that it is not told one by one: read the lists again,
   * everything behind it follows. Ids are this gateway's own, and resumable for ten minutes: an id that
   * is too old, or of another process, is answered with one `reset`.
   */
  readonly streamLists: {
    readonly request: {
      readonly query?:
        | {
            /**
             * Of these, separated by commas: runs, human, dead-letters, services, operations, deployments,
             * schedules. All of them without it.
             */
            readonly topics?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Response;
  };

  /**
   * Follow an operation (GET /api/v1/operations/{operation_id}/events/stream)
   *
   * Server-sent events: operation_pending, operation_running, operation_progress, then
   * operation_completed or operation_failed. Each event's id is its place in the history. Keep the id of
   * each event that you have applied and send it as Last-Event-ID: the stream goes on right behind it.
   * It closes after the terminal event; a reader that already has that one gets 204.
   */
  readonly streamOperationEvents: {
    readonly request: {
      readonly path: {
        /** The operation's id. */
        readonly operation_id: string;
      };
    };
    readonly answer: Response;
  };

  /**
   * Follow a run in several views at once (GET /api/v1/runs/{run_id}/stream)
   *
   * Server-sent events. Each is one event of the history with the views of it that were asked for, under
   * their channels' names; events that none of these views shows are left out, but for the terminal one.
   * Each event's id is its place in the history. Keep the id of each event that you have applied and
   * send it as Last-Event-ID: the stream goes on right behind it. It closes after the terminal event; a
   * reader that already has that one gets 204.
   */
  readonly streamRun: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /**
             * Which views of the history to send, separated by commas: events, logs, timeline, human. All without
             * it.
             */
            readonly channels?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Response;
  };

  /**
   * Follow the events of a run (GET /api/v1/runs/{run_id}/events/stream)
   *
   * Server-sent events from the first one on. Each event's id is its place in the history. Keep the id
   * of each event that you have applied and send it as Last-Event-ID: the stream goes on right behind
   * it. It closes after the terminal event; a reader that already has that one gets 204.
   */
  readonly streamRunEvents: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
    };
    readonly answer: Response;
  };

  /**
   * Follow the logs of a run (GET /api/v1/runs/{run_id}/logs/stream)
   *
   * Server-sent events, each a log record under the type of its event; records that the filters leave
   * out are not sent. Each event's id is its place in the history. Keep the id of each event that you
   * have applied and send it as Last-Event-ID: the stream goes on right behind it. It closes after the
   * terminal event; a reader that already has that one gets 204. Where the terminal event has no record
   * that is shown, its id comes alone.
   */
  readonly streamRunLogs: {
    readonly request: {
      readonly path: {
        /** The run's id. */
        readonly run_id: string;
      };
      readonly query?:
        | {
            /** The least urgent level to show. */
            readonly level?: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | undefined;

            /** Of this agent only. */
            readonly agent_id?: string | undefined;

            /** Of this stream only. */
            readonly stream?: "stdout" | "stderr" | "worker" | "runtime" | undefined;

            /** Records whose message has this text in it; upper and lower case are the same. */
            readonly text?: string | undefined;

            /** Records of this time or later. */
            readonly since?: string | undefined;

            /** Records before this time. */
            readonly until?: string | undefined;
          }
        | undefined;
    };
    readonly answer: Response;
  };

  /**
   * Let a drained node work again (POST /api/v1/nodes/{node_id}/undrain)
   *
   * Jobs that are still there go on; those that have gone stay where they are.
   */
  readonly undrainNode: {
    readonly request: {
      readonly path: {
        /** The node's id. */
        readonly node_id: string;
      };
    };
    readonly answer: NodeDrain;
  };

  /**
   * Remove a model from this node (POST /api/v1/models/{model_id}/remove)
   *
   * Its content goes, its registration stays. Refused while a run or a blueprint needs it, unless force.
   * Look at a dry_run first: it ends with just what the removal would then remove. Content that a
   * blueprint has brought along stays with it.
   */
  readonly uninstallModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly body: RemoveModel;
    };
    readonly answer: Operation;
  };

  /** Change a deployment, or roll out a new version (PATCH /api/v1/deployments/{deployment_id}) */
  readonly updateDeployment: {
    readonly request: {
      readonly path: {
        /** The deployment's id. */
        readonly deployment_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
      readonly body: UpdateDeployment;
    };
    readonly answer: Deployment;
  };

  /**
   * Change a job's name, weight or configuration (PATCH /api/v1/jobs/{job_id})
   *
   * Later runs use the new definition; runs that were accepted before may use either.
   */
  readonly updateJob: {
    readonly request: {
      readonly path: {
        /** The job's id. */
        readonly job_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
      readonly body: UpdateJob;
    };
    readonly answer: Job;
  };

  /**
   * Change a model's registration (PATCH /api/v1/models/{model_id})
   *
   * What is installed stays as it is; an update of the model looks at the changed source. A masked
   * secret in the source keeps the one that is stored.
   */
  readonly updateModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
      readonly body: UpdateModel;
    };
    readonly answer: Model;
  };

  /**
   * Pin an installation, or take the pin off (PATCH
   * /api/v1/models/{model_id}/installations/{installation_id})
   */
  readonly updateModelInstallation: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;

        /** The installation's id. */
        readonly installation_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
      readonly body: UpdateModelInstallation;
    };
    readonly answer: ModelInstallation;
  };

  /** Change a schedule (PATCH /api/v1/schedules/{schedule_id}) */
  readonly updateSchedule: {
    readonly request: {
      readonly path: {
        /** The schedule's id. */
        readonly schedule_id: string;
      };
      readonly headers: {
        /** The current ETag, or *. */
        readonly "if-match": string;
      };
      readonly body: UpdateSchedule;
    };
    readonly answer: Schedule;
  };

  /**
   * Upload a bundle (POST /api/v1/bundles)
   *
   * A zip whose root, or single top folder, holds manifest.json. The same content gets the same
   * bundle_id. Uploading runs nothing.
   */
  readonly uploadBundle: { readonly request: Nothing; readonly answer: Bundle };

  /**
   * Say what would stand against a launch (POST /api/v1/blueprints/{blueprint_id}/validate)
   *
   * Makes nothing. Checks what a launch checks before it is accepted, and says everything at once;
   * validators of the package are run.
   */
  readonly validateBlueprint: {
    readonly request: {
      readonly path: {
        /** The blueprint's id. */
        readonly blueprint_id: string;
      };
      readonly body: ValidateBlueprint;
    };
    readonly answer: BlueprintValidation;
  };

  /**
   * Look at a model (POST /api/v1/models/{model_id}/validate)
   *
   * Changes nothing. Reads the header of what is installed here, else of the file or folder that it
   * comes from, and says what the model needs against what this machine has; asks the server of one that
   * is elsewhere whether it is there.
   */
  readonly validateModel: {
    readonly request: {
      readonly path: {
        /** The model's id. */
        readonly model_id: string;
      };
      readonly body: ValidateModel;
    };
    readonly answer: ModelValidation;
  };
}

/** How each operation is sent. */
export const operations = {
  addBlueprint: {
    method: "POST",
    path: "/api/v1/blueprints/{blueprint_id}/additions",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  addNode: {
    method: "POST",
    path: "/api/v1/system/cluster/nodes:add",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  answerHumanRequest: {
    method: "POST",
    path: "/api/v1/runs/{run_id}/human/{request_id}/response",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  callJobTools: {
    method: "POST",
    path: "/api/v1/jobs/{job_id}/mcp",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  cancelJob: {
    method: "POST",
    path: "/api/v1/jobs/{job_id}/cancel",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  changeResourceLimits: {
    method: "POST",
    path: "/api/v1/resource",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  checkServices: {
    method: "POST",
    path: "/api/v1/services:check",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  collectGarbage: {
    method: "POST",
    path: "/api/v1/system/gc",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  controlRun: {
    method: "PATCH",
    path: "/api/v1/runs/{run_id}",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  countRunLogs: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/logs/histogram",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  createDeployment: {
    method: "POST",
    path: "/api/v1/deployments",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  createJob: { method: "POST", path: "/api/v1/jobs", body: "json", answer: "json", takesKey: true },
  createRun: {
    method: "POST",
    path: "/api/v1/jobs/{job_id}/runs",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  createRuns: {
    method: "POST",
    path: "/api/v1/jobs/{job_id}/runs:batch",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  createSchedule: { method: "POST", path: "/api/v1/schedules", body: "json", answer: "json", takesKey: true },
  createSession: { method: "POST", path: "/api/v1/sessions", body: "json", answer: "json", takesKey: true },
  createTicket: { method: "POST", path: "/console/tickets", body: "json", answer: "json", takesKey: false },
  deleteBundle: {
    method: "DELETE",
    path: "/api/v1/bundles/{bundle_id}",
    body: "none",
    answer: "none",
    takesKey: false,
  },
  deleteDeployment: {
    method: "DELETE",
    path: "/api/v1/deployments/{deployment_id}",
    body: "none",
    answer: "none",
    takesKey: false,
  },
  deleteJob: {
    method: "DELETE",
    path: "/api/v1/jobs/{job_id}",
    body: "none",
    answer: "none",
    takesKey: false,
  },
  deleteModel: {
    method: "DELETE",
    path: "/api/v1/models/{model_id}",
    body: "none",
    answer: "none",
    takesKey: false,
  },
  deleteModelInstallation: {
    method: "DELETE",
    path: "/api/v1/models/{model_id}/installations/{installation_id}",
    body: "none",
    answer: "none",
    takesKey: false,
  },
  deleteSchedule: {
    method: "DELETE",
    path: "/api/v1/schedules/{schedule_id}",
    body: "none",
    answer: "none",
    takesKey: false,
  },
  dispatchSchedule: {
    method: "POST",
    path: "/api/v1/schedules/{schedule_id}/dispatch",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  drainNode: {
    method: "POST",
    path: "/api/v1/nodes/{node_id}/drain",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  emitEvent: { method: "POST", path: "/api/v1/events", body: "json", answer: "json", takesKey: true },
  endSession: {
    method: "DELETE",
    path: "/api/v1/sessions/{session_id}",
    body: "none",
    answer: "none",
    takesKey: false,
  },
  failDeployment: {
    method: "POST",
    path: "/api/v1/deployments/{deployment_id}/fail",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  getBlueprint: {
    method: "GET",
    path: "/api/v1/blueprints/{blueprint_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getBundle: {
    method: "GET",
    path: "/api/v1/bundles/{bundle_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getDeployment: {
    method: "GET",
    path: "/api/v1/deployments/{deployment_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getEvent: {
    method: "GET",
    path: "/api/v1/events/{event_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getHealth: {
    method: "GET",
    path: "/api/v1/health",
    body: "none",
    answer: "json",
    takesKey: false,
    alsoAnswers: [503],
  },
  getHumanRequest: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/human/{request_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getJob: { method: "GET", path: "/api/v1/jobs/{job_id}", body: "none", answer: "json", takesKey: false },
  getJobGrid: {
    method: "GET",
    path: "/api/v1/jobs/{job_id}/grid",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getMetrics: { method: "GET", path: "/api/v1/metrics", body: "none", answer: "json", takesKey: false },
  getModel: {
    method: "GET",
    path: "/api/v1/models/{model_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getModelInstallation: {
    method: "GET",
    path: "/api/v1/models/{model_id}/installations/{installation_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getModelServing: {
    method: "GET",
    path: "/api/v1/models/{model_id}/serving",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getNode: { method: "GET", path: "/api/v1/nodes/{node_id}", body: "none", answer: "json", takesKey: false },
  getNodeDrain: {
    method: "GET",
    path: "/api/v1/nodes/{node_id}/drain",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getObservabilitySummary: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/observability-summary",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getOperation: {
    method: "GET",
    path: "/api/v1/operations/{operation_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getResource: { method: "GET", path: "/api/v1/resource", body: "none", answer: "json", takesKey: false },
  getRun: { method: "GET", path: "/api/v1/runs/{run_id}", body: "none", answer: "json", takesKey: false },
  getRunArtifact: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/artifacts/{artifact_id}",
    body: "none",
    answer: "bytes",
    takesKey: false,
  },
  getRunDashboard: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/dashboard",
    body: "none",
    answer: "bytes",
    takesKey: false,
  },
  getRunDeadLetter: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/dead-letters/{dead_letter_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getRunResult: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/result",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getRuntimeDoctor: {
    method: "GET",
    path: "/api/v1/runtime/doctor",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getRuntimeHealth: {
    method: "GET",
    path: "/api/v1/runtime/health",
    body: "none",
    answer: "json",
    takesKey: false,
    alsoAnswers: [503],
  },
  getRuntimeStatus: {
    method: "GET",
    path: "/api/v1/runtime/status",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getSchedule: {
    method: "GET",
    path: "/api/v1/schedules/{schedule_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getSession: {
    method: "GET",
    path: "/api/v1/sessions/{session_id}",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getSettings: {
    method: "GET",
    path: "/api/v1/system/settings",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getSignIn: { method: "GET", path: "/console/session", body: "none", answer: "json", takesKey: false },
  getSystemSummary: {
    method: "GET",
    path: "/api/v1/system/summary",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  getWorkflowProgress: {
    method: "GET",
    path: "/api/v1/jobs/{job_id}/workflow-progress",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  installModel: {
    method: "POST",
    path: "/api/v1/models/{model_id}/install",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  joinCluster: {
    method: "POST",
    path: "/api/v1/system/cluster/nodes:join",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  launchBlueprint: {
    method: "POST",
    path: "/api/v1/blueprints/{blueprint_id}/runs",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  leaveCluster: {
    method: "POST",
    path: "/api/v1/system/cluster/nodes:leave",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  listAllHumanRequests: {
    method: "GET",
    path: "/api/v1/human",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listBlueprints: {
    method: "GET",
    path: "/api/v1/blueprints",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listBundles: { method: "GET", path: "/api/v1/bundles", body: "none", answer: "json", takesKey: false },
  listDeadLetters: {
    method: "GET",
    path: "/api/v1/dead-letters",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listDeployments: {
    method: "GET",
    path: "/api/v1/deployments",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listEvents: { method: "GET", path: "/api/v1/events", body: "none", answer: "json", takesKey: false },
  listHumanRequests: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/human",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listJobDeadLetters: {
    method: "GET",
    path: "/api/v1/jobs/{job_id}/dead-letters",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listJobEvents: {
    method: "GET",
    path: "/api/v1/jobs/{job_id}/events",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listJobRuns: {
    method: "GET",
    path: "/api/v1/jobs/{job_id}/runs",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listJobs: { method: "GET", path: "/api/v1/jobs", body: "none", answer: "json", takesKey: false },
  listModelInstallations: {
    method: "GET",
    path: "/api/v1/models/{model_id}/installations",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listModels: { method: "GET", path: "/api/v1/models", body: "none", answer: "json", takesKey: false },
  listNodes: { method: "GET", path: "/api/v1/nodes", body: "none", answer: "json", takesKey: false },
  listOperations: {
    method: "GET",
    path: "/api/v1/operations",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listRunArtifacts: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/artifacts",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listRunDeadLetters: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/dead-letters",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listRunEvents: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/events",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listRunLogs: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/logs",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listRunOutputs: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/outputs",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listRunTimeline: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/timeline",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  listRuns: { method: "GET", path: "/api/v1/runs", body: "none", answer: "json", takesKey: false },
  listSchedules: { method: "GET", path: "/api/v1/schedules", body: "none", answer: "json", takesKey: false },
  listServices: { method: "GET", path: "/api/v1/services", body: "none", answer: "json", takesKey: false },
  listSessions: { method: "GET", path: "/api/v1/sessions", body: "none", answer: "json", takesKey: false },
  llmChatCompletions: {
    method: "POST",
    path: "/api/v1/llm/v1/chat/completions",
    body: "json",
    answer: "json",
    takesKey: false,
    alsoAnswers: [400, 401, 403, 404, 413, 415, 422, 429, 500, 503],
  },
  llmCompletions: {
    method: "POST",
    path: "/api/v1/llm/v1/completions",
    body: "json",
    answer: "json",
    takesKey: false,
    alsoAnswers: [400, 401, 403, 404, 413, 415, 422, 429, 500, 503],
  },
  llmEmbeddings: {
    method: "POST",
    path: "/api/v1/llm/v1/embeddings",
    body: "json",
    answer: "json",
    takesKey: false,
    alsoAnswers: [400, 401, 403, 404, 413, 415, 422, 429, 500, 503],
  },
  llmListModels: {
    method: "GET",
    path: "/api/v1/llm/v1/models",
    body: "none",
    answer: "json",
    takesKey: false,
    alsoAnswers: [400, 401, 403, 429, 500, 503],
  },
  pauseDeployment: {
    method: "POST",
    path: "/api/v1/deployments/{deployment_id}/pause",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  pauseJob: {
    method: "POST",
    path: "/api/v1/jobs/{job_id}/pause",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  pauseSchedule: {
    method: "POST",
    path: "/api/v1/schedules/{schedule_id}/pause",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  promoteDeployment: {
    method: "POST",
    path: "/api/v1/deployments/{deployment_id}/promote",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  receiveWebhook: { method: "POST", path: "/hooks/{token}", body: "none", answer: "json", takesKey: false },
  reconcileNode: {
    method: "POST",
    path: "/api/v1/nodes/{node_id}/reconcile",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  refreshModel: {
    method: "POST",
    path: "/api/v1/models/{model_id}/update",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  registerModel: { method: "POST", path: "/api/v1/models", body: "json", answer: "json", takesKey: true },
  removeBlueprint: {
    method: "POST",
    path: "/api/v1/blueprints/{blueprint_id}/removals",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  removeNode: {
    method: "POST",
    path: "/api/v1/system/cluster/nodes:remove",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  removeVolume: {
    method: "DELETE",
    path: "/api/v1/resource/volumes/{volume}",
    body: "none",
    answer: "none",
    takesKey: false,
  },
  resolveService: {
    method: "GET",
    path: "/api/v1/services/{name}/resolve",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  resumeDeployment: {
    method: "POST",
    path: "/api/v1/deployments/{deployment_id}/resume",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  resumeJob: {
    method: "POST",
    path: "/api/v1/jobs/{job_id}/resume",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  resumeSchedule: {
    method: "POST",
    path: "/api/v1/schedules/{schedule_id}/resume",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  retryRunDeadLetter: {
    method: "POST",
    path: "/api/v1/runs/{run_id}/dead-letters/{dead_letter_id}/retry",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  retryRunDeadLetters: {
    method: "POST",
    path: "/api/v1/runs/{run_id}/dead-letters/retry",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  rollbackDeployment: {
    method: "POST",
    path: "/api/v1/deployments/{deployment_id}/rollback",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  serveModel: {
    method: "POST",
    path: "/api/v1/models/{model_id}/serve",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  setNodeMaintenance: {
    method: "POST",
    path: "/api/v1/nodes/{node_id}/maintenance",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  setResourceLimits: {
    method: "PUT",
    path: "/api/v1/resource",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  signIn: { method: "POST", path: "/console/session", body: "json", answer: "json", takesKey: false },
  signOut: { method: "DELETE", path: "/console/session", body: "none", answer: "none", takesKey: false },
  stopModel: {
    method: "POST",
    path: "/api/v1/models/{model_id}/stop",
    body: "none",
    answer: "json",
    takesKey: true,
  },
  streamDeploymentEvents: {
    method: "GET",
    path: "/api/v1/deployments/{deployment_id}/events/stream",
    body: "none",
    answer: "events",
    takesKey: false,
  },
  streamLists: { method: "GET", path: "/api/v1/stream", body: "none", answer: "events", takesKey: false },
  streamOperationEvents: {
    method: "GET",
    path: "/api/v1/operations/{operation_id}/events/stream",
    body: "none",
    answer: "events",
    takesKey: false,
  },
  streamRun: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/stream",
    body: "none",
    answer: "events",
    takesKey: false,
  },
  streamRunEvents: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/events/stream",
    body: "none",
    answer: "events",
    takesKey: false,
  },
  streamRunLogs: {
    method: "GET",
    path: "/api/v1/runs/{run_id}/logs/stream",
    body: "none",
    answer: "events",
    takesKey: false,
  },
  undrainNode: {
    method: "POST",
    path: "/api/v1/nodes/{node_id}/undrain",
    body: "none",
    answer: "json",
    takesKey: false,
  },
  uninstallModel: {
    method: "POST",
    path: "/api/v1/models/{model_id}/remove",
    body: "json",
    answer: "json",
    takesKey: true,
  },
  updateDeployment: {
    method: "PATCH",
    path: "/api/v1/deployments/{deployment_id}",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  updateJob: {
    method: "PATCH",
    path: "/api/v1/jobs/{job_id}",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  updateModel: {
    method: "PATCH",
    path: "/api/v1/models/{model_id}",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  updateModelInstallation: {
    method: "PATCH",
    path: "/api/v1/models/{model_id}/installations/{installation_id}",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  updateSchedule: {
    method: "PATCH",
    path: "/api/v1/schedules/{schedule_id}",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  uploadBundle: {
    method: "POST",
    path: "/api/v1/bundles",
    body: "multipart",
    answer: "json",
    takesKey: true,
  },
  validateBlueprint: {
    method: "POST",
    path: "/api/v1/blueprints/{blueprint_id}/validate",
    body: "json",
    answer: "json",
    takesKey: false,
  },
  validateModel: {
    method: "POST",
    path: "/api/v1/models/{model_id}/validate",
    body: "json",
    answer: "json",
    takesKey: false,
  },
} as const satisfies Readonly<Record<keyof Operations, OperationShape>>;
