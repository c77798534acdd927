// The filter of system calls, run by an interpreter of the few instructions that it has.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Instruction, seccompBytes, seccompProgram } from "./seccomp.ts";

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const X64 = 0xc000003e;
const ARM64 = 0xc00000b7;
const errno = (number: number) => 0x50000 + number;

interface Call {
  readonly number: number;
  readonly arch?: number;
  readonly args?: readonly number[];
}

function verdict(program: readonly Instruction[], { number, arch = X64, args = [] }: Call): number {
  const data = new Map([
    [0, number],
    [4, arch],
    ...args.map((value, index) => [16 + 8 * index, value] as const),
  ]);
  let loaded = 0;
  for (let at = 0; ; at++) {
    const { code, jt, jf, k } = program[at]!;
    const jump = (holds: boolean) => {
      at += holds ? jt : jf;
    };
    if (code === 0x06) return k;
    if (code === 0x20) loaded = (data.get(k) ?? 0) >>> 0;
    else if (code === 0x54) loaded = (loaded & k) >>> 0;
    else if (code === 0x15) jump(loaded === k >>> 0);
    else if (code === 0x35) jump(loaded >= k >>> 0);
    else if (code === 0x45) jump((loaded & k) !== 0);
    else assert.fail(`unknown instruction ${code}`);
  }
}

const program = seccompProgram("x64")!;
const of = (number: number, ...args: number[]) => verdict(program, { number, args });

describe("the filter of system calls", () => {
  test("lets ordinary calls through", () => {
    // read, mmap, execve, openat, futex, fork, exit_group, statx
    for (const number of [0, 9, 59, 257, 202, 57, 231, 332]) assert.equal(of(number), ALLOW, String(number));
  });

  test("refuses what may be a way out", () => {
    // mount, ptrace, bpf, keyctl, userfaultfd, unshare, setns, init_module, kexec_load, fsopen
    for (const number of [165, 101, 321, 250, 323, 272, 308, 175, 246, 430])
      assert.equal(of(number), errno(1), String(number));
  });

  test("does as if it had neither clone3 nor io_uring", () => {
    for (const number of [435, 425, 426, 427]) assert.equal(of(number), errno(38), String(number));
  });

  test("lets threads and processes be made, and no namespaces", () => {
    assert.equal(of(56, 0x3d0f00), ALLOW, "a thread of glibc");
    assert.equal(of(56, 17), ALLOW, "fork");
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
      assert.equal(of(56, flag | 17), errno(1), flag.toString(16));
  });

  test("lets sockets of common kinds be opened, and no raw or unusual ones", () => {
    const SOCK_CLOEXEC = 0o2000000;
    for (const family of [2, 10]) {
      assert.equal(of(41, family, 1 | SOCK_CLOEXEC, 6), ALLOW, "TCP");
      assert.equal(of(41, family, 2, 17), ALLOW, "UDP");
      assert.equal(of(41, family, 3, 1), errno(1), "raw");
      assert.equal(of(41, family, 3 | SOCK_CLOEXEC, 0), errno(1), "raw");
      assert.equal(of(41, family, 2, 1), errno(93), "ICMP by datagrams");
      assert.equal(of(41, family, 1, 132), errno(93), "SCTP");
    }
    assert.equal(of(41, 1, 1, 0), ALLOW, "unix");
    assert.equal(of(41, 16, 3, 0), ALLOW, "routes by netlink, as getaddrinfo asks");
    assert.equal(of(41, 16, 3, 9), errno(93), "audit by netlink");
    for (const family of [17, 29, 38, 40, 44]) assert.equal(of(41, family, 3, 0), errno(97), String(family));
  });

  test("lets terminals be controlled, and nothing be typed into them", () => {
    assert.equal(of(16, 1, 0x5401), ALLOW, "TCGETS");
    for (const control of [0x5412, 0x541c, 0x5423]) assert.equal(of(16, 0, control), errno(1));
  });

  test("ends who calls as another architecture", () => {
    assert.equal(verdict(program, { number: 20, arch: 0x40000003 }), KILL, "i386");
    assert.equal(of(0x40000000 + 1), KILL, "x32");
  });

  test("exists for arm64, with its own numbers, and for no other", () => {
    const arm = seccompProgram("arm64")!;
    const there = (number: number, ...args: number[]) => verdict(arm, { number, arch: ARM64, args });
    assert.equal(there(63), ALLOW, "read");
    assert.equal(there(40), errno(1), "mount");
    assert.equal(there(220, 0x10000000), errno(1), "clone");
    assert.equal(there(198, 17, 3, 0), errno(97), "socket");
    assert.equal(there(29, 0, 0x5412), errno(1), "ioctl");
    assert.equal(verdict(arm, { number: 63, arch: X64 }), KILL);
    assert.equal(seccompProgram("riscv64"), null);
  });

  test("has the form that the kernel reads", () => {
    const bytes = seccompBytes(program);
    assert.equal(bytes.length, program.length * 8);
    assert.equal(bytes.readUInt16LE(0), 0x20);
    assert.equal(bytes.readUInt32LE(4), 4);
    assert.ok(program.every(({ jt, jf }) => jt < 256 && jf < 256));
    assert.ok(program.length < 4_096);
  });
});
