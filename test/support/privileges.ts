// Root may read and write everywhere. A program that is to meet permissions as everybody does is started through this.

/** Words for `ProgramOptions.through`: none for ordinary users; root keeps its name and gives up its capabilities. */
export const withoutPrivileges: readonly string[] =
  process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : [];
