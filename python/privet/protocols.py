"""Protocol families, as the compiled part knows them: how many parties, against whom, and what has to be prepared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .native import native


@dataclass(frozen=True)
class Protocol:
    """What the Python side has to know of a family."""

    name: str
    parties: int
    """How many compute: as few as the family does with."""
    dealer: bool
    """Whether a dealer, who is no party, prepares what runs use up."""
    uses_up: str | None
    """What a run uses up and somebody prepares before it, in a word; ``None`` where runs use up nothing."""
    withstands: tuple[str, ...]
    """Kinds of parties that it is secure against, the default first."""


class _Protocols(Mapping[str, Protocol]):
    """The families by name. Each look-up asks the compiled part, so that importing this module does not need it."""

    def __getitem__(self, name: str) -> Protocol:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    @staticmethod
    def _all() -> dict[str, Protocol]:
        return {
            facts["name"]: Protocol(
                name=facts["name"],
                parties=facts["parties"][0],
                dealer=facts["dealer"],
                uses_up=facts["uses_up"],
                withstands=tuple(facts["withstands"]),
            )
            for facts in native().protocols()
        }


PROTOCOLS: Mapping[str, Protocol] = _Protocols()


def choose(protocol: str, security: str | None) -> tuple[Protocol, str]:
    """The family and what it has to withstand; ``ValueError`` for combinations that do not exist."""
    family = PROTOCOLS.get(protocol)
    if family is None:
        raise ValueError(f"no protocol '{protocol}'; this version has {', '.join(PROTOCOLS)}")
    if security is None:
        return family, family.withstands[0]
    if security not in family.withstands:
        others = [p.name for p in PROTOCOLS.values() if security in p.withstands]
        remedy = f"; choose protocol={others[0]!r}" if others else ""
        raise ValueError(
            f"protocol '{protocol}' takes security={' or '.join(map(repr, family.withstands))}, "
            f"not {security!r}{remedy}"
        )
    return family, security
