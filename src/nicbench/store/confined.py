"""Work on strangers' bytes, in a process of its own: an ordinary user within limits, which reads what it was given.

Where root calls, the process is another user: that of sudo, or nobody. Of root's rights it keeps one, to read what only
root may read, and that only where the kernel's Landlock confines it to the places named (Linux 5.13): the program, and
what the user gave. It writes nothing itself: what it made it hands to its parent, the clerk, which writes the files
that the user asked for, and no others.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pwd
import resource
import shutil
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO, Final

from nicbench.core.errors import HostError, NicbenchError, NotReadyError, UsageError, explain
from nicbench.core.frozen import frozen
from nicbench.store import files

Errand = Callable[[Path], Mapping[str, Any]]

_MOST_BYTES_OF_A_REQUEST: Final = 128 * 1024
_MOST_OF_A_MESSAGE: Final = 4096
_LAST_WORDS_S: Final = 5
_MOST_OPEN_FILES: Final = 4096
"""The highest number of the parent's open files that are closed; it has a few dozen."""
_SYSTEM: Final = (
    *(
        "/usr",
        "/nix/store",
        "/lib",
        "/lib64",
        "/bin",
        "/sys/devices/system",
        "/proc/self",
        "/proc/meminfo",
        "/proc/cpuinfo",
    ),
    *("/proc/stat", "/proc/locks", "/etc/ssl", "/etc/fonts", "/etc/localtime", "/etc/ld.so.cache", "/etc/mime.types"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"),
    *("/dev/zero", "/dev/urandom", "/dev/random"),
)
"""What programs need of a machine, and everybody may read."""


@frozen
class Limits:
    """What the work may use; None: as much as it asks for."""

    memory_bytes: int = 4 * 2**30
    """Of memory that can be written to; what is only reserved is free."""
    cpu_s: int | None = 900
    open_files: int = 1024
    file_bytes: int = 4 * 2**30


@frozen
class Fence:
    """What confined work may reach.

    ``reads``: files and folders that may be read in addition to the program's own. ``may_write``: whether the clerk
    writes a file of this path. ``errands``: further work that the clerk does for it, by name. ``listens`` and
    ``connects``: on the network, by TCP.
    """

    reads: tuple[Path, ...]
    may_write: Callable[[Path], bool] = lambda _: False
    limits: Limits = field(default_factory=Limits)
    errands: Mapping[str, Errand] = field(default_factory=dict)
    listens: bool = False
    connects: bool = False
    gives_way: bool = False
    """Whether the work, and its clerk, have the lowest priority of the kernel."""


@frozen
class Ended:
    """How confined work ended: its exit status, what it returned, and why it failed, where it did."""

    status: int
    answer: Any = None
    error: NicbenchError | None = None


def run_confined(work: Callable[[], Any], fence: Fence, *, in_own_process: bool = True) -> Ended:
    """Runs ``work`` and returns how it ended; what it returns must be plain data.

    Without ``in_own_process`` the work runs in this process, with its rights; its errors are reported in the same way.
    """
    return start_confined(work, fence).serve() if in_own_process else _attempt(work)


def start_confined(work: Callable[[], Any], fence: Fence, keeps: Collection[int] = ()) -> Clerk:
    """Starts ``work``, which keeps these open files of this process, and returns its clerk, who is to serve it."""
    clerk, line = _fork(fence)
    if clerk is not None:
        return clerk
    status = 1
    try:
        _let_go_of_files({line.fileno(), *keeps})
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # the parent hears them, and ends this process
            signal.signal(number, signal.SIG_IGN)
        _enter(fence, line)
        ended = _attempt(work)
        if ended.error is None:
            _request(line, {"do": "answer", "value": ended.answer})
        else:
            _tell(line, ended.error)
        status = ended.status
    except (NicbenchError, OSError) as error:  # it could not become what it has to be
        _tell(line, HostError(explain(error)))
    finally:
        os._exit(status)


def _attempt(work: Callable[[], Any]) -> Ended:
    try:
        return Ended(0, work())
    except NicbenchError as error:
        return Ended(error.exit_status, error=error)
    except Exception as error:
        return Ended(1, error=NicbenchError(explain(error)))


def confine_this(fence: Fence) -> Ended | None:
    """Goes on in a confined process, where it returns None; returns in the first process how that one ended."""
    if fence.gives_way:
        give_way()
    clerk, line = _fork(fence)
    if clerk is not None:
        with _signals_reach(clerk.pid):
            return clerk.serve()
    try:
        _enter(fence, line)
    except NicbenchError as error:
        _tell(line, error)
        os._exit(error.exit_status)
    except OSError as error:
        _tell(line, NotReadyError(f"cannot become an ordinary user: {error.strerror}"))
        os._exit(NotReadyError.exit_status)
    return None


def give_way() -> None:
    """Gives this process, and those that it starts, the lowest priority of the kernel."""
    with contextlib.suppress(OSError):
        os.nice(19)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def ask_clerk(errand: str, path: Path) -> Mapping[str, Any] | None:
    """Has the clerk do an errand; None where this process is not confined."""
    ours = files.hands()
    return ours.ask(errand, path) if isinstance(ours, _ClerksHands) else None


# In the process of the work.


class _ClerksHands(files.Hands):
    """Has the clerk change files."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[BinaryIO]:
        with tempfile.TemporaryFile() as made:
            yield made
            made.flush()
            self.ask("write", path, made.fileno())

    def make_folder(self, path: Path, *, exist_ok: bool = True) -> None:
        if not (exist_ok and path.is_dir()):
            self.ask("folder" if exist_ok else "new folder", path)

    def open_to_append(self, path: Path) -> int:
        return int(self.ask("append", path)["descriptor"])

    def remove(self, path: Path) -> None:
        self.ask("remove", path)

    def remove_folder(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            self.ask("remove folder", path)

    def ask(self, what: str, path: Path, descriptor: int | None = None) -> Mapping[str, Any]:
        """Asks for one thing to be done with a path. OSError or NicbenchError where it was not."""
        asked = {"do": what, "path": os.path.abspath(path)}
        answer, given = _request(self._line, asked, descriptor)
        if answer.get("errno") is not None:
            raise OSError(answer["errno"], os.strerror(answer["errno"]), str(path))
        if "message" in answer:
            raise HostError(answer["message"], place=answer["place"], next_step=answer["next"])
        return {**answer, "descriptor": given}


def _let_go_of_files(kept: Collection[int]) -> None:
    """Puts /dev/null in the place of every open file but these: objects of the parent may still close theirs."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], _MOST_OPEN_FILES)):
        if descriptor not in kept and descriptor != nowhere and _is_open(descriptor):
            os.dup2(nowhere, descriptor)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _enter(fence: Fence, line: socket.socket) -> None:
    """Gives up what the work does not need; what cannot be given up here is an error, but for Landlock."""
    from nicbench.store import landlock  # imported here: it loads ctypes, and only confined work needs it

    scratch = Path(tempfile.gettempdir())
    landlock.die_with_parent(signal.SIGKILL)
    for what, most in (
        (resource.RLIMIT_DATA, fence.limits.memory_bytes),  # not RLIMIT_AS: V8, which draws charts, reserves far more
        (resource.RLIMIT_CPU, fence.limits.cpu_s),
        (resource.RLIMIT_NOFILE, fence.limits.open_files),
        (resource.RLIMIT_FSIZE, fence.limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _limit(what, most)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write fails instead
    if os.geteuid() == 0:
        confined = landlock.landlock_version() > 0
        kept = [landlock.CAP_DAC_READ_SEARCH] if confined else []
        if fence.listens:
            kept.append(landlock.CAP_NET_BIND_SERVICE)
        user, group = ordinary_user()
        try:
            landlock.become(user, group, kept)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EINVAL):
                raise
            landlock.keep_capabilities(())  # root of a container, which has no other users or may not become one
        landlock.die_with_parent(signal.SIGKILL)  # a change of users has undone it
        landlock.gain_nothing()
        if confined:
            reads = (*map(Path, _SYSTEM), *_program(), *fence.reads)
            writes = (scratch, Path(os.devnull))
            landlock.confine_to(reads, writes, listens=fence.listens, connects=fence.connects)
        landlock.refuse_calls()
        _require_program(user)
    files.use_hands(_ClerksHands(line))


def _limit(what: int, most: int | None) -> None:
    """Sets a limit, unless a lower one holds already."""
    if most is None:
        return
    _, hard = resource.getrlimit(what)
    highest = most + _LAST_WORDS_S if what == resource.RLIMIT_CPU else most  # the kernel kills there, and says no why
    if hard != resource.RLIM_INFINITY:
        highest = min(highest, hard)
    resource.setrlimit(what, (min(most, highest), highest))


def ordinary_user() -> tuple[int, int]:
    """Returns the user and the group that confined work of root belongs to: those of sudo, otherwise those of
    ``nobody``.
    """
    user, group = (os.environ.get(name, "") for name in ("SUDO_UID", "SUDO_GID"))
    if user.isdecimal() and int(user) > 0 and group.isdecimal() and int(group) > 0:
        return int(user), int(group)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        return 65534, 65534
    return nobody.pw_uid, nobody.pw_gid


def _program() -> Iterator[Path]:
    """Yields where Python and nicbench lie. The working folder is not among them, though Python may look there."""
    yield from map(Path, {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix})
    yield Path(__file__).parent.parent
    for packages in (Path(each) for each in sys.path if Path(each).name in ("site-packages", "dist-packages")):
        yield packages
        yield from (each.resolve() for each in packages.glob("*") if each.is_symlink())


def _require_program(user: int) -> None:
    needed = (Path(os.__file__), Path(__file__))
    if unreadable := [path for path in needed if not os.access(path, os.R_OK, effective_ids=True)]:
        raise NotReadyError(
            f"the program is not readable for an ordinary user ({user}), and this kernel has no Landlock",
            place=str(unreadable[0]),
            next_step="call it as an ordinary user, of a Python that everybody may read",
        )


# Requests over a socket, whose messages keep their bounds.


def _request(
    line: socket.socket, asked: Mapping[str, Any], descriptor: int | None = None
) -> tuple[dict[str, Any], int | None]:
    try:
        _send(line, asked, [] if descriptor is None else [descriptor])
        received = _receive(line)
    except ValueError as error:  # closed: this process is ending
        raise OSError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
    if received is None:
        raise OSError(errno.EPIPE, "the process that writes the files is gone")
    return received


def _tell(line: socket.socket, error: NicbenchError) -> None:
    told = (error.message, error.place, error.next_step)
    message, place, step = (None if each is None else each[:_MOST_OF_A_MESSAGE] for each in told)
    with contextlib.suppress(OSError):
        asked = {"do": "error", "kind": type(error).__name__, "message": message, "place": place, "next": step}
        _request(line, asked)


def _send(line: socket.socket, content: Mapping[str, Any], descriptors: list[int]) -> None:
    socket.send_fds(line, [json.dumps(content).encode()], descriptors)


def _receive(line: socket.socket) -> tuple[dict[str, Any], int | None] | None:
    """Returns one message, with the file that came with it; None where the other end is gone."""
    text, descriptors, _, _ = socket.recv_fds(line, _MOST_BYTES_OF_A_REQUEST, 1, socket.MSG_CMSG_CLOEXEC)
    if not text:
        return None
    return json.loads(text), descriptors[0] if descriptors else None


# In the first process.


def _fork(fence: Fence) -> tuple[Clerk | None, socket.socket]:
    """Makes the process of the work, which has its own temporary files; that process gets no clerk."""
    scratch = None
    try:
        scratch = Path(tempfile.mkdtemp(prefix="nicbench-"))
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # a user namespace without such a user
                os.chown(scratch, *ordinary_user())
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        pid = os.fork()
    except OSError as error:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        why = error.strerror or str(error)
        raise HostError(f"no process can be made for it: {why}", place=error.filename) from error
    if pid:
        theirs.close()
        return Clerk(fence, pid, ours, scratch), ours
    ours.close()
    if os.getppid() != parent:
        os._exit(1)
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
    return None, theirs


class Clerk:
    """The first process's end: it does what one process of confined work asks for, and waits for it."""

    def __init__(self, fence: Fence, pid: int, line: socket.socket, scratch: Path) -> None:
        self.pid = pid
        self._fence, self._line, self._scratch = fence, line, scratch
        self._made: set[Path] = set()
        self._answer: Any = None
        self._error: NicbenchError | None = None

    def serve(self) -> Ended:
        """Does what the work asks for until it has ended. Whatever ends this ends the work as well."""
        try:
            with self._line:
                while (received := self._next()) is not None:
                    self._reply(*received)
            status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except BaseException:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            raise
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)
        return Ended(status, self._answer, self._error or self._why(status))

    def _next(self) -> tuple[dict[str, Any], int | None] | None:
        try:
            return _receive(self._line)
        except (ConnectionResetError, ValueError, RecursionError):  # killed, or what it sends is no request
            return None

    def _why(self, status: int) -> NicbenchError | None:
        """The reason where a signal ended the work, which could then give none itself."""
        if status >= 0:
            return None
        number = signal.Signals(-status)
        limit = f"it took more than {self._fence.limits.cpu_s} s of CPU time, its limit"
        why = limit if number is signal.SIGXCPU else f"its process was killed by {number.name}"
        return HostError(why, next_step="look at the free memory and the kernel's log of this machine, and try again")

    def _reply(self, asked: dict[str, Any], descriptor: int | None) -> None:
        given: list[int] = []
        answer: Mapping[str, Any] = {}
        try:
            if asked["do"] == "answer":
                self._answer = asked["value"]
            elif asked["do"] == "error":
                self._error = _error_of(asked)
            else:
                path = Path(asked["path"])
                answer = self._do(asked["do"], path.parent.resolve() / path.name, descriptor, given)
        except OSError as error:
            answer = {"errno": error.errno or errno.EIO}
        except NicbenchError as error:
            number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
            answer = {"errno": number, "message": error.message, "place": error.place, "next": error.next_step}
        except (LookupError, TypeError, ValueError, RuntimeError):  # no request of ours
            answer = {"errno": errno.EINVAL}
        finally:
            if descriptor is not None:
                os.close(descriptor)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            _send(self._line, answer, given)
        for each in given:
            os.close(each)

    def _do(self, what: str, path: Path, content: int | None, given: list[int]) -> Mapping[str, Any]:
        hands = files.hands()
        if what in self._fence.errands:
            return self._fence.errands[what](path)
        is_own = any(each in self._made for each in (path, *path.parents))
        if not is_own and not self._fence.may_write(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if what == "write" and content is not None and stat.S_ISREG(os.fstat(content).st_mode):
            with open(content, "rb", closefd=False) as made, hands.writing(path) as stream:
                made.seek(0)
                shutil.copyfileobj(made, stream)
        elif what == "folder":
            hands.make_folder(path)
        elif what == "new folder":
            hands.make_folder(path, exist_ok=False)
            self._made.add(path)
        elif what == "append":
            given.append(hands.open_to_append(path))
        elif what == "remove":
            hands.remove(path)
        elif what == "remove folder" and path in self._made:
            hands.remove_folder(path)
        else:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return {}


def _error_of(told: Mapping[str, Any]) -> NicbenchError:
    """Makes an error of a message about one; its type, which sets the exit status, is one of
    ``nicbench.core.errors``.
    """
    known = {kind.__name__: kind for kind in (NicbenchError, UsageError, HostError, NotReadyError)}
    return known.get(told["kind"], NicbenchError)(told["message"], place=told["place"], next_step=told["next"])


@contextlib.contextmanager
def _signals_reach(pid: int) -> Iterator[None]:
    """Passes signals on to a process, which ends in order and says so."""

    def pass_on(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
