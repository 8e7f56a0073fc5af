"""The examples' own helpers, and progress on terminals and elsewhere."""

from __future__ import annotations

import importlib.util
import io
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from privet._processes import binary
from privet.errors import SessionError
from privet.native import available
from privet.progress import progress

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def data():
    spec = importlib.util.spec_from_file_location("fashion_data", EXAMPLES / "fashion_data.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["fashion_data"] = module
    spec.loader.exec_module(module)
    return module


def idx(*shape, kind=8):
    return struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape) + bytes(range(int(np.prod(shape))))


def test_idx_files_are_read(data, tmp_path):
    path = tmp_path / "images"
    path.write_bytes(idx(2, 3, 3))
    assert data.read_idx(path, (2, 3, 3))[1].tolist() == [[9, 10, 11], [12, 13, 14], [15, 16, 17]]


@pytest.mark.parametrize(
    "content", [b"", idx(2, 3, 3)[:-1], idx(2, 3, 3) + b"x", idx(3, 2, 3), idx(2, 3, 3, kind=13), idx(18)]
)
def test_other_files_are_refused(data, tmp_path, content):
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(SystemExit, match="delete it and run again"):
        data.read_idx(path, (2, 3, 3))


def test_every_source_is_tried_and_named(data, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def broken(target):
        raise OSError("no network")

    broken.__name__ = "from_nowhere"
    monkeypatch.setattr(data, "from_torchvision", broken)
    monkeypatch.setattr(data, "from_debian", broken)
    with pytest.raises(SystemExit, match=r"(?s)from_nowhere: no network.*Put train-images"):
        data.find()


def test_the_quickstart_stays_short():
    text = (EXAMPLES / "quickstart.py").read_text()
    assert len([line for line in text.splitlines() if line.strip() and not line.startswith('"""')]) <= 15


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_off_a_terminal_is_a_few_plain_lines():
    out = io.StringIO()
    show = progress("work", "rows", out)
    for done in range(1, 101):
        show(done, 100)
    lines = out.getvalue().splitlines()
    assert len(lines) == 5
    assert lines[-1].startswith("work: 100/100 rows")
    assert "\r" not in out.getvalue()


def test_progress_on_a_terminal_is_one_bar():
    out = Terminal()
    show = progress("work", "rows", out)
    show(1, 2)
    show(2, 2)
    text = out.getvalue()
    assert text.count("\n") == 1 and text.count("\r") == 2
    assert f"[{'#' * 15}{'.' * 15}]" in text


# --- Examples that run -------------------------------------------------------------------------------


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def runnable():
    try:
        return available() and bool(binary())
    except SessionError:
        return False


@pytest.mark.skipif(not available(), reason="the extension is not built: make build")
def test_trees_agree_with_pytorch(capsys):
    assert example("tabular").main(["--model", "trees", "--trees", "4", "--rows", "32", "--simulate"]) == 1.0
    assert "trees: 32 rows, agreement 100.00%" in capsys.readouterr().out


@pytest.mark.e2e
@pytest.mark.skipif(not runnable(), reason="the binary is not built: make build")
def test_tables_and_images_between_processes():
    assert example("tabular").main(["--rows", "16", "--security", "semi-honest"]) == 1.0
    small = ["--size", "16", "--channels", "2", "--levels", "1", "--steps", "2", "--images", "1"]
    assert example("segment").main(small) >= 0.99
