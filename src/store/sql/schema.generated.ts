// Made by `npm run schema` from the migrations (src/store/sqlite/migrations).

export interface Schema {
  agents: {
    job_id: string;
    agent_index: number;
    agent_id: string;
    status: string;
    done: number;
    processed_messages: number;
    state_json: string;
    last_error: string | null;
    unrouted_json: string | null;
    lease_json: string | null;
    checksum: number | null;
  };
  artifacts: {
    run_id: string;
    artifact_id: string;
    job_id: string;
    agent_id: string | null;
    name: string;
    kind: string;
    title: string | null;
    is_primary: number;
    size: number;
    sha256: string;
    content_type: string;
    created_at: number;
  };
  blueprint_assets: {
    blueprint_id: string;
    kind: string;
    asset_id: string;
    recipe: string;
    ready: number;
    bytes: number;
    created_at: number;
  };
  blueprints: {
    blueprint_id: string;
    state: string;
    fingerprint: string | null;
    size_bytes: number;
    operation_id: string | null;
    added_at: number | null;
    updated_at: number;
    error_json: string | null;
  };
  bundles: {
    bundle_id: string;
    fingerprint: string;
    graph_id: string;
    name: string;
    source_kind: string;
    source_path: string | null;
    size_bytes: number;
    created_at: number;
    updated_at: number;
  };
  commit_count: {
    id: number;
    commits: number;
  };
  dead_letters: {
    dead_letter_id: string;
    job_id: string;
    agent_id: string | null;
    reason: string;
    attempts: number;
    message_json: string;
    created_at: number;
    status: string;
    retried_at: number | null;
  };
  event_matches: {
    seq: number;
    schedule_id: string;
    skipped: string | null;
    run_id: string | null;
    reason: string | null;
    waiting: number;
  };
  events: {
    job_id: string;
    first_seq: number;
    event_count: number;
    lines: string;
    checksum: number | null;
  };
  garbage: {
    kind: string;
    name: string;
  };
  human_requests: {
    job_id: string;
    event_seq: number;
    request_id: string;
    agent_id: string;
    task_seq: number | null;
    prompt: string;
    allowed_json: string;
    default_action: string | null;
    status: string;
    created_at: number;
    expires_at: number | null;
    response_json: string | null;
  };
  idempotency: {
    scope: string;
    key: string;
    request_hash: string;
    status: number;
    headers_json: string;
    body: string;
    created_at: number;
  };
  items: {
    job_id: string;
    agent_index: number;
    first_seq: number;
    lines: string;
    checksum: number | null;
  };
  job_definitions: {
    job_id: string;
    name: string;
    status: string;
    bundle_id: string | null;
    blueprint_id: string | null;
    bundle_fingerprint: string;
    graph_id: string;
    revision: number;
    created_at: number;
    updated_at: number;
    latest_run_id: string | null;
    latest_terminal: number;
    active_runs: number;
    deleted: number;
    extensions_json: string;
    configuration_json: string;
  };
  job_sources: {
    job_id: string;
    manifest_json: string;
    configuration_json: string | null;
    checksum: number | null;
  };
  jobs: {
    job_id: string;
    run_id: string;
    graph_id: string;
    job_name: string | null;
    type: string;
    status: string;
    terminal: number;
    owner: string | null;
    epoch: number;
    revision: number;
    submitted_at: number;
    updated_at: number;
    started_at: number | null;
    paused_at: number | null;
    deadline_at: number | null;
    placement_policy: string;
    recovery_policy: string;
    executor_count: number;
    active_executors: number;
    event_seq: number;
    message_seq: number;
    task_seq: number;
    log_bytes: number;
    partial: number;
    bundle_fingerprint: string | null;
    root_agents_json: string;
    sandboxes_json: string;
    last_event_json: string;
    failure_json: string | null;
    result_json: string | null;
    definition_id: string | null;
    trace_id: string;
    parent_span_id: string | null;
    tally_json: string;
    human_pending: number;
    stored_bytes: number;
    own_payload: number;
    fixed_checksum: number | null;
    progress_checksum: number | null;
    brief_checksum: number | null;
    brief_lines: string | null;
    brief_agents_json: string | null;
    brief_manifest_json: string | null;
  };
  mailboxes: {
    job_id: string;
    agent_index: number;
    depth: number;
  };
  messages: {
    job_id: string;
    agent_index: number;
    seq: number;
    message_json: string;
    checksum: number | null;
  };
  operation_events: {
    operation_id: string;
    seq: number;
    line: string;
  };
  operations: {
    operation_id: string;
    kind: string;
    target: string;
    status: string;
    terminal: number;
    percent: number;
    label: string;
    step: string | null;
    event_seq: number;
    created_at: number;
    updated_at: number;
    finished_at: number | null;
    steps_json: string;
    request_json: string;
    error_json: string | null;
    result_json: string | null;
    owner: string | null;
  };
  resource_limits: {
    id: number;
    limits_json: string;
    revision: number;
  };
  run_ports: {
    node: string;
    port: number;
    run_id: string;
    label: string;
  };
  runs: {
    run_id: string;
    job_id: string;
    runtime_job_id: string;
    status: string;
    terminal: number;
    desired_state: string;
    launched: number;
    label: string | null;
    trigger_kind: string;
    trigger_id: string | null;
    trace_id: string;
    agents_total: number;
    created_at: number;
    started_at: number | null;
    finished_at: number | null;
    updated_at: number;
    failure_json: string | null;
    config_overrides_json: string | null;
    inputs_json: string;
    parent_span_id: string | null;
    owner: string | null;
    end_told: number;
  };
  schedule_runs: {
    run_id: string;
    schedule_id: string;
    runtime_job_id: string;
  };
  schedules: {
    schedule_id: string;
    job_id: string;
    blueprint_id: string | null;
    name: string;
    kind: string;
    status: string;
    status_reason: string | null;
    rule_json: string;
    inputs_json: string;
    config_overrides_json: string | null;
    overlap: string;
    missed_policy: string;
    catchup_limit: number;
    until: number | null;
    max_runs: number | null;
    pause_after_failures: number | null;
    due_at: number | null;
    next_run_at: number | null;
    queued_due_at: number | null;
    last_dispatch_json: string | null;
    failures_in_a_row: number;
    dispatched: number;
    skipped: number;
    missed: number;
    failed: number;
    revision: number;
    version: number;
    created_at: number;
    updated_at: number;
    event_type: string | null;
    waiting_events: number;
    waiting_bytes: number;
    throttled_until: number | null;
  };
  schema_admits: {
    id: number;
    oldest: string;
    version: string;
  };
  schema_migrations: {
    name: string;
  };
  tasks: {
    job_id: string;
    task_seq: number;
    agent_index: number;
    kind: string;
    attempt: number;
    failures: number;
    state_json: string;
    message_json: string;
    checksum: number | null;
  };
  trigger_events: {
    seq: number;
    event_id: string;
    type: string;
    source: string | null;
    payload_json: string;
    received_at: number;
    depth: number;
  };
}
