"""Federated averaging in which nobody sees a single owner's model.

After AriaNN (Ryffel et al., PoPETs 2022, Algorithm 9); sums are hidden by the owners' pairwise masks (Bonawitz et al.,
CCS 2017, without dropouts). Each of n owners trains with one server, the two of them as the parties of a protocol with
additive shares of two parties. Afterwards owner i holds ``a_i`` and the server ``b_i`` with ``w_i = a_i + b_i`` modulo
2^64. Owner i sends ``a_i + m_i``, its masks adding up to zero over all owners. The server adds all that it has: the sum
of all ``w_i``.

*What is seen.* ``m_i`` has a summand of each other owner, expanded from a seed that these two alone know. Let the
server and k owners collude. What the others send is uniform but for its sum, as long as two or more are left. Any two
of them share a mask that nobody else knows. So the coalition learns the sum of the others' models, and no single one.
If all but one owner collude with the server, that sum is the last one's model: no aggregation can hide it. A dealer,
where the protocol has one, colludes with nobody.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .errors import PrivetError

Shares = dict[str, NDArray[np.uint64]]
"""One party's shares of states by name, modulo 2^64."""

BITS = 64
MAGIC = b"privetCP"
DIGEST = 32
SEED_BYTES = 32


def seed() -> bytes:
    """A fresh seed for two owners; they agree on it over a channel that nobody else reads."""
    return secrets.token_bytes(SEED_BYTES)


def states(program: str) -> dict[str, dict[str, Any]]:
    """The states of a training's program by name: ``shape``, ``bits`` and ``frac`` of each, in the order of shares."""
    nodes = (node for plan in json.loads(program)["plans"] for node in plan["plan"]["nodes"])
    found = {node["op"]["name"]: node["ty"] for node in nodes if node["op"]["kind"] == "state"}
    return dict(sorted(found.items()))


def shares(checkpoint: str | Path, program: str) -> Shares:
    """A party's own shares from one of its checkpoints; ``program`` is :attr:`privet.Trainer.program`.

    Raises :class:`PrivetError` for a file that is none, is cut off, or holds other states.
    """
    content = Path(checkpoint).read_bytes()
    (length,) = struct.unpack_from("<I", content, len(MAGIC)) if len(content) > 12 + DIGEST else (0,)
    if not content.startswith(MAGIC):
        raise PrivetError(f"{checkpoint} is no checkpoint")
    body, kinds = content[12 + length : -DIGEST], states(program)
    for name, ty in kinds.items():
        if ty["bits"] != BITS:
            raise PrivetError(f"state '{name}' has {ty['bits']} ring bits; federated averaging adds up {BITS}")
    sizes = {name: int(np.prod(ty["shape"], dtype=np.int64)) for name, ty in kinds.items()}
    if 8 * sum(sizes.values()) != len(body):
        raise PrivetError(
            f"{checkpoint} holds {len(body)} bytes of shares, and the program's states take {8 * sum(sizes.values())}"
        )
    words, at, found = np.frombuffer(body, dtype="<u8").astype(np.uint64), 0, {}
    for name, size in sizes.items():
        found[name] = words[at : at + size].reshape(kinds[name]["shape"])
        at += size
    return found


def latest(party: str | Path) -> Path:
    """The last checkpoint of the one training in a party's folder."""
    files = sorted(Path(party).glob("checkpoints/*/*.checkpoint"), key=lambda file: int(file.stem))
    if not files:
        raise PrivetError(f"{party} has no checkpoint: train with checkpoint_every")
    return files[-1]


def masked(own: Shares, me: int, seeds: Mapping[int, bytes], round: int) -> Shares:
    """What owner ``me`` sends in a round: its shares under masks that add up to zero over all owners.

    ``seeds`` has the seed that it shares with each other owner, by number. A round's number is used once.
    """
    if not seeds:
        raise PrivetError("an owner alone has nobody to hide among")
    return {name: share + _mask(me, seeds, round, name, share.shape) for name, share in own.items()}


def average(
    server: Sequence[Shares], owners: Sequence[Shares], program: str, names: Sequence[str]
) -> dict[str, Tensor]:
    """The mean of all owners' states of these names, from the server's shares and what every owner sent.

    Raises :class:`PrivetError` for a share that is missing or does not fit the program's state.
    """
    if len(server) != len(owners) or not owners:
        raise PrivetError(f"{len(server)} of the server's shares, but {len(owners)} owners sent theirs")
    kinds, found = states(program), {}
    for name in names:
        total = np.zeros(kinds[name]["shape"], dtype=np.uint64)
        for part in [*server, *owners]:
            share = part.get(name)
            if share is None or share.shape != total.shape or share.dtype != np.uint64:
                raise PrivetError(f"a share of state '{name}' is missing, or has another shape or type")
            total = total + share
        real = total.astype(np.int64).astype(np.float64) / 2.0 ** kinds[name]["frac"] / len(owners)
        found[name] = torch.from_numpy(real)
    return found


def _mask(me: int, seeds: Mapping[int, bytes], round: int, name: str, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """The sum of this owner's pairwise masks: plus where its number is the smaller one, else minus."""
    total = np.zeros(shape, dtype=np.uint64)
    for other, pair in seeds.items():
        if len(pair) != SEED_BYTES or other == me:
            raise PrivetError(f"owner {me}: no seed shared with owner {other}")
        stream = hashlib.shake_256(pair + struct.pack("<Q", round) + name.encode())
        part = np.frombuffer(stream.digest(8 * total.size), dtype="<u8").astype(np.uint64).reshape(shape)
        total = total + part if me < other else total - part
    return total


__all__ = ["Shares", "average", "latest", "masked", "seed", "shares", "states"]
