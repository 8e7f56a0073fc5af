"""Where in the user's model an exported operation comes from."""

from __future__ import annotations

import re
import sysconfig
from pathlib import PurePath
from typing import Any

from torch import fx

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n\s*(?P<code>[^\n]*)')
_REPEAT = re.compile(r"@\d+")  # a module called again is numbered: `relu@1`
_INSIDE = re.compile(r"[/\\]torch[/\\]|^<")  # not the user's
_LIBRARY = PurePath(sysconfig.get_path("stdlib"))  # neither, but for the packages that are installed below it
_PACKAGE = PurePath(__file__).parent
_OURS = (_PACKAGE, _PACKAGE / "training")  # but not the networks of `privet.models`


def layer_of(node: fx.Node) -> str:
    """The innermost module, ``features.3.squeeze`` style; empty for the model itself.

    In a joint graph a gradient belongs to the module of the operation that it is the gradient of.
    """
    stack: dict[str, Any] = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return _REPEAT.sub("", str(path))


def source_of(node: fx.Node) -> str:
    """``model.py:12 in forward: x = self.conv1(x)``: the last line outside torch and privet themselves."""
    return last_user_frame(node.meta.get("stack_trace") or "")


def last_user_frame(trace: str) -> str:
    """The innermost frame of a printed stack that is the user's own; directories are left out."""
    frames = [m for m in _FRAME.finditer(trace) if not is_inside(m["file"])]
    if not frames:
        return ""
    f = frames[-1]
    return f"{PurePath(f['file']).name}:{f['line']} in {f['function']}: {f['code'].strip()}"


def is_inside(name: str) -> bool:
    """Whether a file belongs to Python, torch or privet itself, rather than to what a user wrote or installed."""
    file = PurePath(name)
    library = _LIBRARY in file.parents and "site-packages" not in file.parts
    return bool(_INSIDE.search(name)) or library or file.parent in _OURS
