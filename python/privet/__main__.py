"""The ``privet`` command as the wheel installs it: hands over to the binary."""

from __future__ import annotations

import os
import sys

from ._processes import binary
from .errors import SessionError


def main() -> None:
    """Replace this process by the binary, with the same arguments."""
    try:
        program = binary()
    except SessionError as error:
        sys.exit(f"privet: {error}")
    os.execv(program, [program, *sys.argv[1:]])  # noqa: S606  (no shell: the binary gets the arguments as they are)


if __name__ == "__main__":
    main()
