// What this process has done for deployments since it started. Labels are outcomes, never ids.

import type { DeploymentMeter } from "../../deployments/controller.ts";
import type { Deployment } from "../../deployments/records.ts";

export class DeploymentCounts implements DeploymentMeter {
  readonly rollouts = { succeeded: 0, failed: 0, rolled_back: 0 };
  readonly instances = { started: 0, ended: 0 };

  stepped(before: Deployment, after: Deployment): void {
    const { status } = after;
    if (status !== before.status && status in this.rollouts)
      this.rollouts[status as keyof typeof this.rollouts]++;
    this.instances.started += after.started - before.started;
    const kept = new Set(after.instances.map(({ runId }) => runId));
    this.instances.ended += before.instances.filter(({ runId }) => !kept.has(runId)).length;
  }
}
