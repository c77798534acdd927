// Variables of the runtime that hold its own secrets, or lead to them. Nobody who writes a manifest or a configuration
// may have a worker given one. src/app/config.test.ts compares them with the table of settings.

const WITHHELD = /^SVC_(?:API_TOKEN|RUNTIME_API_TOKEN|SECRET_KEY|DATABASE_URL)(?:_FILE)?$/;

/** Whether a variable of the runtime's environment is never given to workers. */
export function isWithheldVariable(name: string): boolean {
  return WITHHELD.test(name);
}
