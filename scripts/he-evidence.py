#!/usr/bin/env python3
"""Hardness of the parameter sets of crates/he, by an estimate of our own.

    scripts/he-evidence.py           checks the published points, and that crates/he/src/evidence.txt is this script's
    scripts/he-evidence.py --write   writes it

Costs are those behind the table of the Homomorphic Encryption Standard (Albrecht and others, 2018, table 1): BKZ with
block size b in dimension d takes 8 d calls of a sieve of 2^(0.292 b + 16.4) operations.

* primal: the embedding of Bai and Galbraith with the condition of Alkim and others (USENIX Security 2016); the secret
  is scaled to the error's size.
* dual: Albrecht's scaled dual (EUROCRYPT 2017) with the short vectors that one sieve gives for nothing; the fewest
  samples are taken that make it cheapest.

The lattice estimator (github.com/malb/lattice-estimator) needs Sage. With it, for a set:
    LWE.estimate(LWE.Parameters(n=N, q=2**LOGQ, Xs=ND.UniformMod(3), Xe=ND.CenteredBinomial(21)))
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

EVIDENCE = Path(__file__).resolve().parent.parent / "crates/he/src/evidence.txt"

# name, N, log2 q from above
SETS = [("n4096-q100", 4096, 100.0), ("n8192-q150", 8192, 150.0), ("n8192-q200", 8192, 200.0)]
# dimension n = rank times degree, log2 of the modulus: modules over a power of two (crates/he/src/torus/params.rs)
TORUS = [
    (2560, 66),
    (3072, 79),
    (3584, 92),
    (4096, 105),
    (4608, 119),
    (5120, 132),
    (5632, 145),
    (6144, 158),
    (6656, 172),
    (7168, 185),
    (7680, 198),
    (8192, 212),
    (8704, 225),
    (9216, 238),
    (9728, 252),
    (10240, 265),
]
ERROR = math.sqrt(21 / 2)
TERNARY = math.sqrt(2 / 3)

# The standard's table 1, ternary secret, error 3.19: security, N, largest log2 q.
STANDARD = [
    (128, 1024, 27),
    (128, 2048, 54),
    (128, 4096, 109),
    (128, 8192, 218),
    (128, 16384, 438),
    (192, 1024, 19),
    (192, 2048, 37),
    (192, 4096, 75),
    (192, 8192, 152),
    (192, 16384, 305),
    (256, 1024, 14),
    (256, 2048, 29),
    (256, 4096, 58),
    (256, 8192, 118),
    (256, 16384, 237),
]
STANDARD_ERROR = 8 / math.sqrt(2 * math.pi)


def log_delta(b: float) -> float:
    """log2 of the root-Hermite factor of BKZ (Chen, 2013)."""
    return math.log2((math.pi * b) ** (1 / b) * b / (2 * math.pi * math.e)) / (2 * (b - 1))


def cost(b: float, d: int) -> float:
    """Bits of operations of BKZ with blocks of b in dimension d."""
    return 0.292 * b + 16.4 + math.log2(8 * d)


def samples(n: int) -> list[int]:
    """Numbers of samples to try: the optimum is flat."""
    return [n * i // 32 for i in range(12, 65)]


def primal(n: int, logq: float, error: float) -> tuple[int, float]:
    """Block size and bits of the primal attack."""
    scale = math.log2(error / TERNARY)

    def block(m: int) -> tuple[int, float] | None:
        d = n + m + 1
        volume = (m * logq + n * scale) / d

        def works(b: int) -> bool:
            return math.log2(error) + math.log2(b) / 2 <= (2 * b - d - 1) * log_delta(b) + volume

        low, high = 50, d
        if not works(high):
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if works(middle) else (middle + 1, high)
        return low, cost(low, d)

    return min((found for found in map(block, samples(n)) if found), key=lambda f: f[1])


def dual(n: int, logq: float, error: float) -> tuple[int, float]:
    """Block size and bits of the dual attack."""
    scale = math.log2(error / TERNARY)

    def best(m: int) -> tuple[int, float]:
        d = n + m

        def total(b: int) -> float:
            length = d * log_delta(b) + n * (logq - scale) / d
            # log2 of 1 / advantage^2 for a vector of this length
            tries = 4 * math.pi**2 * 4 ** (length + math.log2(error) - logq) * math.log2(math.e)
            return cost(b, d) + max(0.0, tries - 0.2075 * b)

        low, high = 50, d
        while high - low > 3:
            third = (high - low) // 3
            if total(low + third) < total(high - third):
                high -= third
            else:
                low += third
        return min((b, total(b)) for b in range(low, high + 1))

    return min(map(best, samples(n)), key=lambda f: f[1])


def lines() -> Iterator[str]:
    """The evidence, line by line."""
    yield "# Written by scripts/he-evidence.py, which says how. Own estimate, not the lattice estimator's."
    yield "# Ternary secret, centred binomial error of standard deviation 3.24; bits of operations."
    yield "#"
    published = "# Published points (Homomorphic Encryption Standard, table 1) by the same estimate"
    yield f"{published}: level, N, log2 q, primal, dual"
    for level, n, logq in STANDARD:
        bits = [primal(n, logq, STANDARD_ERROR)[1], dual(n, logq, STANDARD_ERROR)[1]]
        # the table's moduli are the largest that reach the level, by the attack that binds
        if not level - 3 <= min(bits) <= level + 9:
            sys.exit(f"error: {level} bits at N = {n}, log2 q = {logq}: {bits}")
        yield f"#   {level} {n} {logq} {bits[0]:.1f} {bits[1]:.1f}"
    yield "#"
    yield "# For comparison, without the factors 8 d and 2^16.4 (core-SVP): primal"
    for name, n, logq in SETS:
        yield f"#   {name} {0.292 * primal(n, logq, ERROR)[0]:.1f}"
    yield "#"
    yield "# set, N, log2 q, primal, dual"
    for name, n, logq in SETS:
        yield f"{name} {n} {logq} {primal(n, logq, ERROR)[1]:.1f} {dual(n, logq, ERROR)[1]:.1f}"
    yield "#"
    yield "# dimension over the torus, n, log2 of the modulus, primal, dual: estimated as plain LWE of dimension n"
    for n, bits in TORUS:
        yield f"torus-n{n} {n} {bits} {primal(n, bits, ERROR)[1]:.1f} {dual(n, bits, ERROR)[1]:.1f}"


def main() -> None:
    """Compare the evidence with the file, or write it."""
    text = "\n".join(lines()) + "\n"
    if sys.argv[1:] == ["--write"]:
        EVIDENCE.write_text(text)
    elif EVIDENCE.read_text() != text:
        sys.exit(f"error: {EVIDENCE} is not what this script finds; look at the difference, then run it with --write")


main()
