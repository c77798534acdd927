"""Tries to get out of where it runs, in many ways, and prints what it got: {"name": [got, "what happened"]}.

What it is after is in ATTACK_JSON. Each attack leaves nothing behind when it works.
"""
import ctypes
import errno
import json
import os
import signal
import socket
import stat
import struct
import sys

TARGET = json.loads(os.environ["ATTACK_JSON"])
HERE = os.getcwd()
OUT = os.environ["SVC_OUTPUT_DIR"]
INPUT = os.environ["SVC_INPUT_FILE"]
IS_X64 = os.uname().machine == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)
results = {}


def attack(function):
    name = function.__name__
    try:
        got = function()
        results[name] = [bool(got), str(got)[:200]]
    except OSError as error:
        results[name] = [False, f"{errno.errorcode.get(error.errno, error.errno)} {error}"[:200]]
    except Exception as error:
        results[name] = [False, repr(error)[:200]]
    return function


def call(*args):
    """A system call; raises OSError."""
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if result == -1:
        raise OSError(ctypes.get_errno(), "syscall")
    return result


def answered(number, refusal, *args):
    """Whether the kernel looks at a call at all, and does not refuse it as the filter does."""
    try:
        call(number, *args)
    except OSError as error:
        return error.errno != refusal and errno.errorcode[error.errno]
    return "done"


def in_child(run):
    """What `run` returns, as an exit code of a process of its own: 0 is success."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if run() else 1
        except BaseException:
            code = 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def number(x64, other):
    return x64 if IS_X64 else other


def created(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)
    return path


def writable(path):
    os.close(os.open(path, os.O_WRONLY))
    return path


def listed(path):
    return os.listdir(path) or "empty"


def read(path):
    with open(path, "rb") as file:
        return file.read(100)


# ---- files of the machine


@attack
def reads_shadow():
    return read("/etc/shadow")


@attack
def lists_the_home():
    return listed(TARGET["home"])


@attack
def reads_the_database():
    return read(TARGET["home"] + "/troupe.db")


@attack
def reads_the_secret_key():
    return read(TARGET["home"] + "/secret-key")


@attack
def reads_another_run():
    return read(TARGET["home"] + "/runs/run_other/agents/a/work/private")


@attack
def climbs_out_of_the_workspace():
    return read(HERE + "/../../../../../secret-key")


@attack
def lists_the_home_of_root():
    return listed("/root")


@attack
def sees_files_in_tmp():
    return read(TARGET["tmp_file"])


@attack
def sees_var():
    return listed("/var/lib")


@attack
def sees_run():
    return listed("/run")


@attack
def sees_sys():
    return listed("/sys/class")


@attack
def sees_control_groups():
    return listed("/sys/fs/cgroup")


@attack
def reads_users_of_the_machine():
    return b"daemon" in read("/etc/passwd") or len(read("/etc/passwd")) >= 100


# ---- writing elsewhere


@attack
def writes_to_usr():
    return created("/usr/.troupe-attack")


@attack
def writes_to_etc():
    return created("/etc/.troupe-attack")


@attack
def writes_to_the_root():
    return created("/.troupe-attack")


@attack
def writes_to_dev():
    return created("/dev/.troupe-attack")


@attack
def changes_its_input():
    return writable(INPUT)


@attack
def adds_to_the_attempts_folder():
    return created(os.path.dirname(INPUT) + "/extra")


@attack
def replaces_its_event_stream():
    path = os.environ["SVC_EVENT_STREAM"]
    os.rename(path, path + ".moved")
    os.rename(path + ".moved", path)
    return path


@attack
def replaces_the_output_folder():
    os.rename(OUT, OUT + ".moved")
    os.rename(OUT + ".moved", OUT)
    return OUT


assert read(TARGET["read_only"] + "/file") == b"shown"


@attack
def writes_to_what_is_read_only():
    return created(TARGET["read_only"] + "/extra")


@attack
def links_a_file_into_the_output():
    os.link(INPUT, OUT + "/linked")
    os.unlink(OUT + "/linked")
    return OUT


@attack
def links_a_shown_file_into_the_workspace():
    os.link(TARGET["read_only"] + "/file", "linked")
    os.unlink("linked")
    return HERE


@attack
def writes_to_the_runtimes_program():
    """As one that replaces what started it, through /proc/self/exe."""
    for path in (TARGET["node"], "/sandbox/node", "/proc/1/exe", "/proc/self/exe"):
        try:
            return writable(path)
        except OSError:
            pass
    return False


@attack
def opens_core_pattern():
    return writable("/proc/sys/kernel/core_pattern")


@attack
def opens_sysrq():
    return writable("/proc/sysrq-trigger")


@attack
def opens_settings_of_the_kernel():
    return writable("/proc/sys/vm/drop_caches")


@attack
def opens_the_kernels_log():
    return read("/dev/kmsg") if os.path.exists("/dev/kmsg") else False


@attack
def finds_disks():
    return [name for name in os.listdir("/dev") if stat.S_ISBLK(os.lstat("/dev/" + name).st_mode)]


@attack
def makes_a_device():
    os.mknod("device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.unlink("device")
    return "made"


@attack
def makes_a_disk():
    os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    os.unlink("disk")
    return "made"


@attack
def may_have_setuid_files():
    return not os.statvfs(".").f_flag & os.ST_NOSUID


# ---- processes


def is_victim(pid):
    try:
        return TARGET["victim_word"].encode() in read(f"/proc/{pid}/cmdline")
    except OSError:
        return False


@attack
def sees_other_processes():
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and is_victim(pid)]


@attack
def signals_other_processes():
    os.kill(TARGET["victim"], 0)
    return is_victim(TARGET["victim"])


@attack
def traces_another_process():
    return in_child(lambda: call(number(101, 117), 0x4206, TARGET["victim"], 0, 0) == 0)


@attack
def traces_its_parent():
    return answered(number(101, 117), errno.EPERM, 0x4206, os.getppid(), 0, 0) == "done"


@attack
def reads_anothers_memory():
    return answered(number(310, 270), errno.EPERM, TARGET["victim"], 0, 0, 0, 0, 0)


@attack
def opens_anothers_memory():
    return os.close(os.open(f"/proc/{TARGET['victim']}/mem", os.O_RDONLY)) is None


@attack
def looks_through_process_1():
    return listed("/proc/1/root/root")


@attack
def finds_the_runtimes_environment():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if "=".join(TARGET["variable"]).encode() in file.read():
                    return pid
        except OSError:
            pass
    return False


@attack
def finds_the_runtimes_program():
    return any("node" in os.readlink(f"/proc/{pid}/exe") for pid in os.listdir("/proc") if pid.isdigit() and pid != str(os.getpid()))


@attack
def has_open_descriptors():
    return [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and os.path.exists(f"/proc/self/fd/{fd}")]


@attack
def has_capabilities():
    lines = open("/proc/self/status").read().split("\n")
    return [line for line in lines if line.startswith("Cap") and int(line.split()[1], 16)]


@attack
def may_get_privileges():
    return "NoNewPrivs:\t0" in open("/proc/self/status").read()


@attack
def is_not_filtered():
    return "Seccomp:\t0" in open("/proc/self/status").read()


@attack
def becomes_root():
    return in_child(lambda: os.setuid(0) is None)


def same_namespace(kind):
    return lambda: os.readlink("/proc/self/ns/" + kind) == TARGET["namespaces"][kind]


for kind in ("pid", "ipc", "uts", "net", "mnt", "user", "cgroup"):
    shares = same_namespace(kind)
    shares.__name__ = f"shares_the_{kind}_namespace"
    attack(shares)

# ---- network


def connected(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(5)
        one.connect(address)
        return address


@attack
def connects_to_an_abstract_socket():
    return connected(socket.AF_UNIX, "\0" + TARGET["abstract"])


@attack
def connects_to_a_socket_of_the_machine():
    return connected(socket.AF_UNIX, TARGET["socket"])


@attack
def connects_to_the_docker_socket():
    return connected(socket.AF_UNIX, "/run/docker.sock")


@attack
def connects_to_loopback():
    return connected(socket.AF_INET, ("127.0.0.1", TARGET["port"]))


@attack
def connects_to_loopback_by_ipv6():
    return connected(socket.AF_INET6, ("::1", TARGET["port"]))


def has_way_to(family, address):
    # UDP: connecting sends nothing, and fails where there is no way.
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.connect(address)
        return one.getsockname()


@attack
def has_a_way_to_other_hosts():
    return has_way_to(socket.AF_INET, ("192.0.2.1", 443))


@attack
def has_a_way_to_the_metadata_address():
    return has_way_to(socket.AF_INET, ("169.254.169.254", 80))


@attack
def has_a_way_by_ipv6():
    return has_way_to(socket.AF_INET6, ("2001:db8::1", 443))


@attack
def asks_a_name_server():
    question = b"\0\1\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        return one.sendto(question, ("192.0.2.53", 53))


@attack
def resolves_names():
    return socket.getaddrinfo("example.com", 443)


@attack
def sees_network_interfaces():
    return [name for _, name in socket.if_nameindex() if name != "lo"]


@attack
def opens_a_raw_socket():
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close() is None


@attack
def opens_a_packet_socket():
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close() is None


@attack
def opens_a_kernel_event_socket():
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15).close() is None


@attack
def opens_an_unusual_socket():
    return answered(number(41, 198), errno.EAFNOSUPPORT, 29, 3, 1)


# ---- the kernel


@attack
def mounts():
    flags = ctypes.c_long(0)
    os.mkdir("mounted")
    try:
        if libc.mount(b"none", b"mounted", b"tmpfs", flags, None) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        libc.umount(b"mounted")
        return "mounted"
    finally:
        os.rmdir("mounted")


@attack
def opens_a_mount_tree():
    return answered(428, errno.EPERM, -100, ctypes.c_char_p(b"/"), 0)


def unshared(flag):
    return in_child(lambda: call(number(272, 97), flag) == 0)


@attack
def makes_a_user_namespace():
    return unshared(0x10000000)


@attack
def makes_a_mount_namespace():
    return unshared(0x20000)


@attack
def makes_a_user_namespace_by_clone():
    pid = call(number(56, 220), 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "made"


@attack
def calls_clone3():
    return answered(435, errno.ENOSYS, 0, 0)


@attack
def enters_a_namespace():
    def enter():
        fd = os.open("/proc/self/ns/uts", os.O_RDONLY)
        return call(number(308, 268), fd, 0) == 0

    return in_child(enter)


@attack
def changes_its_root():
    return in_child(lambda: os.chroot("/") is None)


@attack
def changes_the_name_of_the_machine():
    return in_child(lambda: socket.sethostname(socket.gethostname()) is None)


@attack
def calls_bpf():
    return answered(number(321, 280), errno.EPERM, 9999, 0, 0)


@attack
def watches_performance():
    return answered(number(298, 241), errno.EPERM, 0, 0, 0, 0, 0)


@attack
def makes_a_userfaultfd():
    return answered(number(323, 282), errno.EPERM, 0xFFFF)


@attack
def uses_keyrings():
    return answered(number(250, 219), errno.EPERM, 0, -4, 0)


@attack
def adds_a_key():
    return answered(number(248, 217), errno.EPERM, 0, 0, 0, 0, 0)


@attack
def asks_for_a_key():
    return answered(number(249, 218), errno.EPERM, 0, 0, 0, 0)


@attack
def uses_io_uring():
    return answered(425, errno.ENOSYS, 0, 0)


@attack
def opens_by_handle():
    return answered(number(304, 265), errno.EPERM, -1, 0, 0)


@attack
def copies_anothers_descriptor():
    return answered(438, errno.EPERM, -1, 0, 0)


@attack
def unloads_a_module():
    return answered(number(176, 106), errno.EPERM, ctypes.c_char_p(b"troupe_none"), 0)


@attack
def loads_a_kernel():
    return answered(number(246, 104), errno.EPERM, 0, 999, 0, 0xFFFFFFFF)


@attack
def sets_the_clock():
    return answered(number(227, 112), errno.EPERM, 0, 0)


@attack
def reads_the_kernels_log():
    return answered(number(103, 116), errno.EPERM, 10, 0, 0)


@attack
def types_into_a_terminal():
    import fcntl

    master, slave = os.openpty()

    def typed():
        os.setsid()
        fcntl.ioctl(slave, 0x540E, 0)
        try:
            fcntl.ioctl(slave, 0x5412, b"x")
        except OSError as error:
            # EIO: a kernel that has it switched off.
            return error.errno != errno.EPERM
        return True

    return in_child(typed)


@attack
def calls_as_another_architecture():
    """The numbers of i386 by int 0x80: getpid is 20 there."""
    if not IS_X64:
        return False
    import mmap

    def called():
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        return ctypes.CFUNCTYPE(ctypes.c_long)(address)() > 0

    return in_child(called)


# ---- too much of something


@attack
def starts_processes_without_end():
    pids = []
    try:
        for _ in range(TARGET["processes"] + 20):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            pids.append(pid)
        return len(pids)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def fills(folder):
    paths = []
    try:
        for number in range(TARGET["tmp_mb"] + 8):
            paths.append(f"{folder}/filling-{number}")
            with open(paths[-1], "wb", buffering=0) as file:
                file.write(bytes(1 << 20))
        return "more than tmp_mb"
    finally:
        for path in paths:
            os.unlink(path)


@attack
def raises_its_limits():
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return limit == resource.RLIM_INFINITY or resource.setrlimit(resource.RLIMIT_NPROC, (limit + 1, limit + 1)) is None


@attack
def fills_tmp():
    return fills("/tmp")


@attack
def fills_shared_memory():
    return fills("/dev/shm")


@attack
def writes_a_large_file():
    def write():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open("large", "wb", buffering=0) as file:
            file.seek((TARGET["file_mb"] << 20) - 1)
            return file.write(b"xx") == 2

    try:
        return in_child(write)
    finally:
        os.unlink("large")


@attack
def computes_without_end():
    import resource

    return resource.getrlimit(resource.RLIMIT_CPU)[1] == resource.RLIM_INFINITY


@attack
def leaves_core_files():
    import resource

    return resource.getrlimit(resource.RLIMIT_CORE)[1] != 0


# ---- what the test looks at when it has ended: nothing of it may become an artifact
os.symlink(TARGET["home"] + "/secret-key", OUT + "/symlink")
os.symlink(TARGET["home"], OUT + "/folder")
os.mkfifo(OUT + "/pipe")
with socket.socket(socket.AF_UNIX) as special:
    special.bind(OUT + "/s")
with open(OUT + "/ordinary.txt", "w") as file:
    file.write("ordinary")

print(json.dumps({"complete_step": results}))
