// What jobs need of blueprints: what one is made of, and its addition when it is not prepared yet.

import type { Definition } from "../bundles/definition.ts";
import type { Operation, OperationWrites } from "../operations/records.ts";
import type { PackageDescription } from "./package-description.ts";
import type { BlueprintWrites } from "./records.ts";

export type BlueprintForJob = {
  readonly blueprintId: string;
  readonly description: PackageDescription;
  /** Of the prepared package; before there is one, of the catalog's folder. */
  readonly definition: Definition;
} & (
  | { readonly kind: "added"; readonly fingerprint: string }
  /** Jobs of it wait, as `preparing`, until its addition has ended. */
  | { readonly kind: "not_added" }
);

export interface AdditionWrites {
  readonly operations: OperationWrites;
  readonly blueprints: BlueprintWrites;
}

export interface BlueprintSource {
  /** @throws DomainError `blueprint_not_found`; `validation_failed` with its mistakes when it is broken; `blueprint_busy` while it is being removed */
  forJob(blueprintId: string): Promise<BlueprintForJob>;
  /**
   * @param reads what is committed, when it is absent
   * @throws DomainError `blueprint_busy` while the blueprint is being removed
   */
  refuseRemoving(blueprintId: string, reads?: Pick<BlueprintWrites, "prepared">): Promise<void>;
  /**
   * Asks for the blueprint's addition, in the transaction that makes a job which waits for it; an addition that is
   * open already is that one.
   */
  requestAddition(writes: AdditionWrites, blueprintId: string): Promise<Operation>;
  /** To be called after that commit; begins the work of an operation, once. */
  begin(operation: Operation): void;
}
