// Where a check looks: the address of the check, of the service, or this machine's own, as the runtime's process reaches
// it. It is neither the address that the service binds nor the URL that browsers are given.

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** host:port, as it stands in URLs. */
export function authority({ host, port }: Target): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
