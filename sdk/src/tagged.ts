// Records with the ETag of the version that was read.

/** The ETag is derived from the revision when a proxy has removed the header. */
export function tagged<T extends { readonly revision: number }>(answer: {
  readonly value: T;
  readonly headers: Headers;
}): T & { readonly etag: string } {
  const { value, headers } = answer;
  return { ...value, etag: headers.get("etag") ?? `"${value.revision}"` };
}
