// The filter of system calls in a sandbox: a program of classic BPF, as the kernel's seccomp(2) and bwrap's --seccomp take it.
//
// - What has no use in a sandbox and has been a way out of one is refused: mounts, namespaces, tracing and reading of other
//   processes, keys, kernel modules, BPF, raw sockets, unusual families of sockets, input put into terminals.
// - A call that libraries try first and can do without is answered as by a kernel that does not have it (ENOSYS).
// - Calls of another architecture, by which the numbers below would mean something else, end the process.

import { constants as system } from "node:os";

const { EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT } = system.errno;

interface Architecture {
  /** AUDIT_ARCH_* */
  readonly audit: number;
  readonly numbers: Readonly<Record<string, number>>;
}

/** Numbers of the calls that are spoken of here. */
const architectures: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    numbers: {
      ioctl: 16,
      socket: 41,
      clone: 56,
      ptrace: 101,
      syslog: 103,
      uselib: 134,
      ustat: 136,
      sysfs: 139,
      vhangup: 153,
      modify_ldt: 154,
      pivot_root: 155,
      adjtimex: 159,
      chroot: 161,
      acct: 163,
      settimeofday: 164,
      mount: 165,
      umount2: 166,
      swapon: 167,
      swapoff: 168,
      reboot: 169,
      sethostname: 170,
      setdomainname: 171,
      iopl: 172,
      ioperm: 173,
      init_module: 175,
      delete_module: 176,
      quotactl: 179,
      lookup_dcookie: 212,
      clock_settime: 227,
      kexec_load: 246,
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      unshare: 272,
      perf_event_open: 298,
      fanotify_init: 300,
      open_by_handle_at: 304,
      clock_adjtime: 305,
      setns: 308,
      process_vm_readv: 310,
      process_vm_writev: 311,
      kcmp: 312,
      finit_module: 313,
      kexec_file_load: 320,
      bpf: 321,
      userfaultfd: 323,
    },
  },
  arm64: {
    audit: 0xc00000b7,
    numbers: {
      lookup_dcookie: 18,
      ioctl: 29,
      umount2: 39,
      mount: 40,
      pivot_root: 41,
      chroot: 51,
      vhangup: 58,
      quotactl: 60,
      acct: 89,
      unshare: 97,
      kexec_load: 104,
      init_module: 105,
      delete_module: 106,
      clock_settime: 112,
      syslog: 116,
      ptrace: 117,
      reboot: 142,
      sethostname: 161,
      setdomainname: 162,
      settimeofday: 170,
      adjtimex: 171,
      socket: 198,
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      clone: 220,
      swapon: 224,
      swapoff: 225,
      perf_event_open: 241,
      fanotify_init: 262,
      open_by_handle_at: 265,
      clock_adjtime: 266,
      setns: 268,
      process_vm_readv: 270,
      process_vm_writev: 271,
      kcmp: 272,
      finit_module: 273,
      bpf: 280,
      userfaultfd: 282,
      kexec_file_load: 294,
    },
  },
};

/** The same on both: younger than the two lists. */
const young = {
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  process_madvise: 440,
  mount_setattr: 442,
  quotactl_fd: 443,
  open_tree_attr: 467,
};
/** Libraries do without them. */
const unknownCalls = { io_uring_setup: 425, io_uring_enter: 426, io_uring_register: 427, clone3: 435 };

/** They are looked at more closely. */
const conditional = ["ioctl", "socket", "clone"];

/** CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID and _NEWNET. */
const NAMESPACES = 0x7e020000;
/** TIOCSTI, TIOCLINUX and TIOCSETD. */
const TERMINAL_CONTROLS = [0x5412, 0x541c, 0x5423];
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
/** SOCK_STREAM, SOCK_DGRAM and SOCK_SEQPACKET, without the flags in the same number. */
const SOCKET_TYPES = [1, 2, 5];
const SOCKET_TYPE_MASK = 0xf;
/** The default, TCP, UDP and multipath TCP. */
const INTERNET_PROTOCOLS = [0, 6, 17, 262];
const NETLINK_ROUTE = 0;
const X32_BIT = 0x40000000;

const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const JUMP_IF_ANY_BIT = 0x45;
const AND = 0x54;
const RETURN = 0x06;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const errno = (number: number) => 0x00050000 | number;

/** Places in `struct seccomp_data`. */
const NUMBER = 0;
const ARCHITECTURE = 4;
const argument = (index: number) => 16 + 8 * index;

export interface Instruction {
  readonly code: number;
  /** How many instructions are left out when the comparison holds, and when it does not. */
  readonly jt: number;
  readonly jf: number;
  readonly k: number;
}

type Program = readonly Instruction[];

const load = (offset: number): Instruction => ({ code: LOAD, jt: 0, jf: 0, k: offset });
const end = (action: number): Instruction => ({ code: RETURN, jt: 0, jf: 0, k: action });

/** Runs `then` if the comparison holds; it ends in a return. */
function when(code: number, k: number, then: Program): Program {
  return [{ code, jt: 0, jf: then.length, k }, ...then];
}

const whenEqual = (k: number, then: Program) => when(JUMP_IF_EQUAL, k, then);

/** Ends with one action for each of some values of what is loaded, and with another for all others. */
function oneOf(values: readonly number[], then: number, otherwise: number): Program {
  return [...values.flatMap((value) => whenEqual(value, [end(then)])), end(otherwise)];
}

const isInternetSocket: Program = [
  load(argument(1)),
  { code: AND, jt: 0, jf: 0, k: SOCKET_TYPE_MASK },
  ...SOCKET_TYPES.flatMap((type) =>
    whenEqual(type, [load(argument(2)), ...oneOf(INTERNET_PROTOCOLS, ALLOW, errno(EPROTONOSUPPORT))]),
  ),
  end(errno(EPERM)),
];

const socketRules: Program = [
  load(argument(0)),
  ...whenEqual(AF_UNIX, [end(ALLOW)]),
  ...whenEqual(AF_INET, isInternetSocket),
  ...whenEqual(AF_INET6, isInternetSocket),
  ...whenEqual(AF_NETLINK, [load(argument(2)), ...oneOf([NETLINK_ROUTE], ALLOW, errno(EPROTONOSUPPORT))]),
  end(errno(EAFNOSUPPORT)),
];

const cloneRules: Program = [
  load(argument(0)),
  ...when(JUMP_IF_ANY_BIT, NAMESPACES, [end(errno(EPERM))]),
  end(ALLOW),
];

const ioctlRules: Program = [load(argument(1)), ...oneOf(TERMINAL_CONTROLS, errno(EPERM), ALLOW)];

/** Those that are refused whatever their arguments, by name. */
const refusedNumbers = (numbers: Readonly<Record<string, number>>) =>
  Object.entries({ ...numbers, ...young }).filter(([name]) => !conditional.includes(name));

/** @returns null where the numbers of the calls are not known */
export function seccompProgram(arch: string = process.arch): Program | null {
  const { audit, numbers } = architectures[arch] ?? { audit: 0, numbers: {} };
  const { socket, clone, ioctl } = numbers;
  if (socket === undefined || clone === undefined || ioctl === undefined) return null;
  const refused = refusedNumbers(numbers);
  return [
    load(ARCHITECTURE),
    { code: JUMP_IF_EQUAL, jt: 1, jf: 0, k: audit },
    end(KILL_PROCESS),
    load(NUMBER),
    ...(arch === "x64" ? when(JUMP_IF_AT_LEAST, X32_BIT, [end(KILL_PROCESS)]) : []),
    ...whenEqual(socket, socketRules),
    ...whenEqual(clone, cloneRules),
    ...whenEqual(ioctl, ioctlRules),
    ...Object.values(unknownCalls).flatMap((number) => whenEqual(number, [end(errno(ENOSYS))])),
    ...refused.flatMap(([, number]) => whenEqual(number, [end(errno(EPERM))])),
    end(ALLOW),
  ];
}

/** As the kernel reads it: `struct sock_filter` after another. */
export function seccompBytes(program: Program): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, { code, jt, jf, k }] of program.entries()) {
    const at = index * 8;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(jt, at + 2);
    bytes.writeUInt8(jf, at + 3);
    bytes.writeUInt32LE(k >>> 0, at + 4);
  }
  return bytes;
}

/**
 * The filter as the Open Container Initiative's runtime specification has it, for a kernel that is not the machine's: of what
 * depends on arguments, namespaces, terminals and netlink are looked at.
 */
export function ociSeccomp(arch: string = process.arch) {
  const names = refusedNumbers(architectures[arch]?.numbers ?? {}).map(([name]) => name);
  const refuse = (calls: readonly string[], args: readonly object[]) => ({
    ...{ names: calls, action: "SCMP_ACT_ERRNO", errnoRet: EPERM },
    ...(args.length > 0 && { args }),
  });
  const bits = Array.from({ length: 32 }, (_, bit) => 2 ** bit).filter((bit) => (NAMESPACES & bit) !== 0);
  const { clone3: _, ...others } = unknownCalls;
  return {
    defaultAction: "SCMP_ACT_ALLOW",
    syscalls: [
      refuse([...names, ...Object.keys(others)], []),
      ...bits.map((bit) =>
        refuse(["clone"], [{ index: 0, value: bit, valueTwo: bit, op: "SCMP_CMP_MASKED_EQ" }]),
      ),
      refuse(
        ["socket"],
        [
          { index: 0, value: AF_NETLINK, op: "SCMP_CMP_EQ" },
          { index: 2, value: NETLINK_ROUTE, op: "SCMP_CMP_NE" },
        ],
      ),
      ...TERMINAL_CONTROLS.map((value) => refuse(["ioctl"], [{ index: 1, value, op: "SCMP_CMP_EQ" }])),
    ],
  };
}
