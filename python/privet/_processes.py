"""The parties, and a dealer where the protocol has one, as child processes of this one."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from .errors import SessionError
from .protocols import choose

T = TypeVar("T")

POLL_S = 0.05
GRACE_S = 3.0
TAIL_BYTES = 4000

CLIENT = "client"


def binary() -> str:
    """The ``privet`` command: ``$PRIVET_BINARY``, the wheel's own, this checkout's, or one on the path."""
    chosen = os.environ.get("PRIVET_BINARY")
    if chosen:
        if not Path(chosen).is_file():
            raise SessionError(f"PRIVET_BINARY is {chosen}, which is not there; build it with `make build`")
        return chosen
    spec = importlib.util.find_spec("privet")
    package = Path(spec.origin).parent if spec is not None and spec.origin else Path(__file__).parent
    for candidate in (package / "bin" / "privet", package.parents[1] / "target" / "release" / "privet"):
        if candidate.is_file():
            return str(candidate)
    found = shutil.which("privet")
    if found is None:
        raise SessionError("the `privet` binary is not there: run `make build`, or set PRIVET_BINARY to it")
    return found


def render(report: Path, page: Path) -> None:
    """Have the binary turn a run report into an HTML page."""
    command = [binary(), "report", str(report), "--output", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SessionError(f"`privet report` failed: {last_lines(done.stderr)}")


class Processes:
    """One deployment on this machine, in one folder. Leaving the ``with`` block ends its processes."""

    def __init__(
        self,
        folder: Path,
        protocol: str = "fss",
        security: str | None = None,
        parties: int | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> None:
        self.folder = folder
        self.protocol, self.security = choose(protocol, security)
        self.parties = self.protocol.count(parties)
        self.parameters = dict(parameters or {})
        self.binary = binary()
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Processes:
        atexit.register(self.stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        atexit.unregister(self.stop)

    @property
    def client_file(self) -> Path:
        """The node file of this process, which owns the data and receives the result."""
        return self._node(CLIENT)

    @property
    def nodes(self) -> dict[str, str]:
        """Child processes by the folder of their node file, with the command each runs."""
        parties = {f"party{i}": "party" for i in range(self.parties)}
        return {"dealer": "dealer", **parties} if self.protocol.has_dealer(self.parameters) else parties

    def initialise(self, plan: Path, weights: Path | None) -> None:
        """Write certificates, the deployment and every node file.

        Party 1 owns the model and gets its weights' path, or the party that the protocol gives them to (``heot``:
        party 0); without one, as in training, the client owns it.
        """
        command = [self.binary, "init", "--local", str(self.folder), "--plan", str(plan)]
        if weights is not None:
            command += ["--weights", str(weights)]
        roles = ["--data-owner", f"client:{CLIENT}"]
        if weights is None:
            roles += ["--model-owner", f"client:{CLIENT}"]
        family = ["--protocol", self.protocol.name, "--security", self.security, "--parties", str(self.parties)]
        for name, value in self.parameters.items():
            family += ["--set", f"{name}={value}"]
        done = subprocess.run([*command, *roles, *family], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SessionError(f"`privet init` failed: {last_lines(done.stderr)}")

    def start(self) -> None:
        """Start the parties and a dealer; their output goes to log files in the folder."""
        for name, command in self.nodes.items():
            with self._log(name).open("wb") as log:
                self._children[name] = subprocess.Popen(
                    [self.binary, command, "--config", str(self._node(name))],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )

    def while_alive(self, action: Callable[[], T]) -> T:
        """The result of ``action``, unless a process ends first: then its error is raised."""
        box: dict[str, Any] = {}

        def work() -> None:
            try:
                box["result"] = action()
            except BaseException as error:
                box["error"] = error

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        while worker.is_alive():
            worker.join(POLL_S)
            if worker.is_alive():
                self.check()
        if "error" in box:
            self.check()
            raise box["error"]
        result: T = box["result"]
        return result

    def check(self) -> None:
        """Raise :class:`SessionError` with the last words of a process that has ended."""
        for name, child in self._children.items():
            code = child.poll()
            if code is not None:
                log = self._log(name)
                words = log.read_bytes()[-TAIL_BYTES:].decode(errors="replace") if log.is_file() else ""
                how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
                raise SessionError(f"{name} {how}: {last_lines(words)}")

    def stop(self) -> None:
        """End all processes: politely first, then not."""
        for child in self._children.values():
            if child.poll() is None:
                child.terminate()
        for child in self._children.values():
            try:
                child.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self._children.clear()

    def _node(self, name: str) -> Path:
        return self.folder / name / "node.toml"

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def last_lines(text: str, count: int = 6) -> str:
    """The end of a program's output, in a message."""
    return "\n".join(text.strip().splitlines()[-count:]) or "it said nothing"
