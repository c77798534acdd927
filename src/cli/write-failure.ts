// Why a file or folder could not be written, in words that say what to do about it. Pure.

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full. Free some space, or choose a place on another disk",
  EDQUOT: "this user's share of the disk is used up. Free some space, or choose a place on another disk",
  EACCES: "this user may not write there. Choose another place",
  EPERM: "this user may not write there. Choose another place",
  EROFS: "that disk can only be read. Choose another place",
  ENOENT: "its folder does not exist. Make it, or choose another place",
  ENOTDIR: "a file stands where a folder is needed. Choose another place",
  EEXIST: "something of that name is there already. Choose another place",
};

/** @returns without a full stop at the end; the system's code stands behind what is known, else its own words */
export function writeFailure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = code === undefined ? undefined : reasons[code];
  return reason === undefined ? message : `${reason} (${code})`;
}
