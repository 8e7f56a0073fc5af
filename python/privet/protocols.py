"""Protocol families: how many parties, against whom, and whether a dealer is needed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Protocol:
    """What the Python side has to know of a family."""

    name: str
    parties: int
    dealer: bool
    """Whether a dealer prepares keys, which runs use up."""
    withstands: tuple[str, ...]
    """Kinds of parties that it is secure against, the default first."""


PROTOCOLS = {
    p.name: p
    for p in (
        Protocol("fss", parties=2, dealer=True, withstands=("semi-honest",)),
        Protocol("rep3", parties=3, dealer=False, withstands=("malicious", "semi-honest")),
    )
}


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
