"""Write prg.txt, compare.txt, ot.txt and he.txt: known answers from an implementation that shares no code with the crates.

`python3 vectors/generate.py` from the repository's root; AES is spelled out after FIPS 197 and checked
against its appendix C.1 first. Numbers are decimal, blocks are 16 bytes in hexadecimal as they lie in
memory; a block's integer is little endian.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

HERE = Path(__file__).parent
BLOCK_KEYS = 64
LEAF_BITS = 7
MASK64 = (1 << 64) - 1


def xtime(a: int) -> int:
    return (a << 1) ^ (0x11B if a & 0x80 else 0)


def gf_mul(a: int, b: int) -> int:
    out = 0
    while b:
        if b & 1:
            out ^= a
        a, b = xtime(a), b >> 1
    return out


def make_sbox() -> list[int]:
    box = []
    for a in range(256):
        inverse = next((b for b in range(256) if gf_mul(a, b) == 1), 0)
        rotated = [inverse << i | inverse >> (8 - i) for i in range(5)]
        box.append((rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ rotated[4] ^ 0x63) & 0xFF)
    return box


SBOX = make_sbox()


def expand(key: bytes) -> list[list[int]]:
    words = [list(key[i : i + 4]) for i in range(0, 16, 4)]
    rcon = 1
    for i in range(4, 44):
        word = words[i - 1]
        if i % 4 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= rcon
            rcon = xtime(rcon)
        words.append([a ^ b for a, b in zip(words[i - 4], word)])
    return [sum(words[i : i + 4], []) for i in range(0, 44, 4)]


def aes(key: bytes, block: bytes) -> bytes:
    rounds = expand(key)
    s = [a ^ b for a, b in zip(block, rounds[0])]
    for r in range(1, 11):
        s = [SBOX[s[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if r < 10:
            mixed = []
            for c in range(0, 16, 4):
                col = s[c : c + 4]
                for i in range(4):
                    a, b, d, e = (col[(i + j) % 4] for j in range(4))
                    mixed.append(xtime(a) ^ xtime(b) ^ b ^ d ^ e)
            s = mixed
        s = [a ^ b for a, b in zip(s, rounds[r])]
    return bytes(s)


def block(v: int) -> bytes:
    return v.to_bytes(16, "little")


def derive(seed: bytes, domain: int, index: int) -> bytes:
    return aes(seed, block(domain << 64 | index))


def stream(seed: bytes, first: int, blocks: int) -> bytes:
    return b"".join(derive(seed, 0, i) for i in range(first, first + blocks))


def tree_hash(key: bytes, s: int) -> int:
    high, low = s >> 64, s & MASK64
    sigma = (high ^ low) << 64 | high
    return int.from_bytes(aes(key, block(sigma)), "little") ^ sigma


def deal(keys: tuple[bytes, bytes], bits: int, alpha: int, root: int, delta: int) -> list[list[int]]:
    """Both parties' words: root, levels, leaf (DESIGN section 6)."""
    delta |= 1
    s = [root, root ^ delta]
    words = [[s[0]], [s[1]]]
    for i in range(max(bits - LEAF_BITS, 0)):
        right = alpha >> (bits - 1 - i) & 1
        h = [tree_hash(keys[0], v) for v in s]
        cw = h[0] ^ h[1] ^ (0 if right else delta)
        s = [h[b] ^ (cw if s[b] & 1 else 0) ^ (s[b] if right else 0) for b in (0, 1)]
        for w in words:
            w.append(cw)
    leaf = tree_hash(keys[1], s[0]) ^ tree_hash(keys[1], s[1]) ^ 1 << (alpha & 127)
    return [[*w, leaf] for w in words]


def walk(keys: tuple[bytes, bytes], bits: int, words: list[int], x: int) -> tuple[int, int]:
    s, lt = words[0], 0
    for i in range(max(bits - LEAF_BITS, 0)):
        left = tree_hash(keys[0], s) ^ (words[1 + i] if s & 1 else 0)
        if x >> (bits - 1 - i) & 1:
            s = left ^ s
        else:
            lt ^= (left ^ s) & 1
            s = left
    out = tree_hash(keys[1], s) ^ (words[-1] if s & 1 else 0)
    low = x & 127
    return lt ^ (bin(out >> (low + 1)).count("1") & 1), out >> low & 1


def layout(batch: list[list[int]]) -> bytes:
    """Level-major blocks of 64 keys."""
    out = b""
    for first in range(0, len(batch), BLOCK_KEYS):
        part = batch[first : first + BLOCK_KEYS]
        out += b"".join(block(key[w]) for w in range(len(part[0])) for key in part)
    return out


def prg_vectors() -> list[str]:
    seed = bytes(range(16))
    lines = ["# seed, then what it gives; made by generate.py"]
    lines.append(f"stream {seed.hex()} 0 {stream(seed, 0, 5).hex()}")
    lines.append(f"stream {seed.hex()} 250 {stream(seed, 250, 12).hex()}")
    zero = bytes(16)
    lines.append(f"stream {zero.hex()} 0 {stream(zero, 0, 70).hex()}")
    lines.extend(
        f"derive {seed.hex()} {domain} {index} {derive(seed, domain, index).hex()}"
        for domain, index in [(1, 0), (1, 1), (2, 0), (5, 1 << 40), (9, MASK64)]
    )
    for i in range(70):
        s = int.from_bytes(derive(seed, 100, i), "little")
        lines.append(f"hash {seed.hex()} {block(s).hex()} {block(tree_hash(seed, s)).hex()}")
    return lines


def compare_vectors() -> list[str]:
    lines = ["# one batch after another; shares are one 0 or 1 a key; made by generate.py"]
    counter = count()
    seed = b"privet compare 1"

    def draw() -> int:
        return int.from_bytes(stream(seed, next(counter), 1), "little")

    for bits, keys in [(1, 2), (6, 3), (7, 2), (8, 2), (12, 66), (40, 2), (63, 1), (64, 2)]:
        hash_keys = (block(draw()), block(draw()))
        domain = (1 << bits) - 1
        alpha = [draw() & domain for _ in range(keys)]
        near = [draw() % 4 for _ in range(keys)]
        x = [[a, (a + 1) & domain, (a - 1) & domain, draw() & domain][n] for a, n in zip(alpha, near)]
        roots, deltas = [draw() for _ in alpha], [draw() for _ in alpha]
        dealt = [deal(hash_keys, bits, *secrets) for secrets in zip(alpha, roots, deltas)]
        lines += [f"bits {bits}", f"inner {hash_keys[0].hex()}", f"leaf {hash_keys[1].hex()}"]
        lines.append("alpha " + " ".join(map(str, alpha)))
        lines.append("x " + " ".join(map(str, x)))
        lines.append("roots " + " ".join(block(v).hex() for v in roots))
        lines.append("deltas " + " ".join(block(v).hex() for v in deltas))
        shares = []
        for party in (0, 1):
            batch = [key[party] for key in dealt]
            shares.append([walk(hash_keys, bits, key, p) for key, p in zip(batch, x)])
            lines.append(f"key{party} {layout(batch).hex()}")
            lines.append(f"lt{party} " + "".join(str(lt) for lt, _ in shares[party]))
            lines.append(f"eq{party} " + "".join(str(eq) for _, eq in shares[party]))
        for a, p, (lt0, eq0), (lt1, eq1) in zip(alpha, x, *shares):
            assert (lt0 ^ lt1, eq0 ^ eq1) == (p < a, p == a)
        lines.append("end")
    return lines


def round_key(public: bytes, number: int) -> bytes:
    """The hash's key of a round of trees, or of a tweak of pads."""
    return stream(derive(public, 7, number), 0, 1)


def half_tree(key: bytes, root: int, delta: int, depth: int) -> tuple[list[int], list[int]]:
    """Leaves by path, level 1 in the lowest bit, and every level's sum of left nodes."""
    nodes, sums = [root, root ^ delta], [root]
    for _ in range(1, depth):
        left = [tree_hash(key, s) for s in nodes]
        right = [s ^ h for s, h in zip(nodes, left)]
        sums.append(xor_all(left))
        nodes = left + right
    return [s & ~1 for s in nodes], sums


def xor_all(blocks: list[int]) -> int:
    out = 0
    for b in blocks:
        out ^= b
    return out


def fold(seed: bytes, log_k: int, table: list[int], outputs: int) -> list[int]:
    """Ten blocks of the table for each output, at places from the seed's stream."""
    words = stream(seed, 0, (3 * outputs + 1) // 2)
    out = []
    for i in range(outputs):
        a, b, c = (int.from_bytes(words[24 * i + 8 * j : 24 * i + 8 * j + 8], "little") for j in range(3))
        places = [w >> s for w in (a, b, c) for s in (0, 19, 38)]
        places.append(a >> 57 | b >> 57 << 7 | c >> 57 << 14)
        out.append(xor_all([table[p % (1 << log_k)] for p in places]))
    return out


def ot_vectors() -> list[str]:
    lines = ["# oblivious transfer; made by generate.py"]
    counter = count()
    seed = b"privet transfers"

    def draw() -> int:
        return int.from_bytes(stream(seed, next(counter), 1), "little")

    def blocks(values: list[int]) -> str:
        return b"".join(map(block, values)).hex()

    for depth, number in [(1, 1), (2, 7), (5, 1 << 40)]:
        public, delta = block(draw()), draw() | 1
        roots = [draw() for _ in range(4)]
        q = [[draw() & ~1 for _ in range(4)] for _ in range(depth)]
        choices = [[draw() & 1 for _ in range(4)] for _ in range(depth)]
        trees = [half_tree(round_key(public, number), root, delta, depth) for root in roots]
        message = [trees[lane][1][level] ^ q[level][lane] for level in range(depth) for lane in range(4)]
        t = [q[level][lane] ^ choices[level][lane] * delta for level in range(depth) for lane in range(4)]
        missing = [sum((1 - choices[i][lane]) << i for i in range(depth)) for lane in range(4)]
        leaves = [trees[lane][0][j] for j in range(1 << depth) for lane in range(4)]
        found = [leaves[4 * j + l] ^ (delta if j == missing[l] else 0) for j in range(1 << depth) for l in range(4)]
        lines += [f"trees {depth} {number} {public.hex()} {block(delta).hex()} {blocks(roots)}"]
        lines += [f"base {blocks(sum(q, []))} {blocks(t)}"]
        lines += [f"message {blocks(message)}", f"leaves {blocks(leaves)}", f"punctured {blocks(found)}"]
    for log_k in (4, 8):
        of_table, of_rows = block(draw()), block(draw())
        table = stream(of_table, 0, 1 << log_k)
        table = [int.from_bytes(table[i : i + 16], "little") for i in range(0, len(table), 16)]
        lines.append(f"fold {log_k} {of_table.hex()} {of_rows.hex()} {blocks(fold(of_rows, log_k, table, 64))}")
    public, inputs = block(draw()), [draw() for _ in range(4)]
    outputs = [tree_hash(round_key(public, (4094 + i) // 4096), x) for i, x in enumerate(inputs)]
    lines.append(f"pads 4094 {public.hex()} {blocks(inputs)} {blocks(outputs)}")
    return lines


def ntt(coefficients: list[int], p: int) -> list[int]:
    """A polynomial at the odd powers of the root of order 2 N of the smallest base, in bit-reversed order."""
    n = len(coefficients)
    roots = (pow(base, (p - 1) // (2 * n), p) for base in count(2))
    root = next(r for r in roots if pow(r, n, p) == p - 1)
    bits = n.bit_length() - 1
    exponents = [2 * int(format(i, f"0{bits}b")[::-1], 2) + 1 for i in range(n)]
    return [sum(c * pow(root, e * j, p) for j, c in enumerate(coefficients)) % p for e in exponents]


def packed(places: dict[int, int]) -> str:
    return ",".join(f"{at}:{value}" for at, value in sorted(places.items())) or "-"


def matmul_packing(m: int, k: int, o: int, block: tuple[int, int, int]) -> list[str]:
    """Rows of blocks with what stands where; operands and weights are numbered from 1."""
    m1, k1, o1 = block
    lines = [f"matmul {m} {k} {o} {m1} {k1} {o1}"]
    for row in range(0, m, m1):
        for place in range(0, k, k1):
            x = {
                i * k1 * o1 + k1 - 1 - j: (row + i) * k + place + j + 1
                for i in range(min(m1, m - row))
                for j in range(min(k1, k - place))
            }
            lines.append(f"input {packed(x)}")
    for column in range(0, o, o1):
        for place in range(0, k, k1):
            w = {
                c * k1 + j: (place + j) * o + column + c + 1
                for c in range(min(o1, o - column))
                for j in range(min(k1, k - place))
            }
            lines.append(f"weights {packed(w)}")
    for row in range(0, m, m1):
        for column in range(0, o, o1):
            y = {
                i * k1 * o1 + c * k1 + k1 - 1: (row + i) * o + column + c
                for i in range(min(m1, m - row))
                for c in range(min(o1, o - column))
            }
            lines.append(f"outputs {packed(y)}")
    return lines


def he_vectors() -> list[str]:
    lines = ["# encryption; made by generate.py"]
    for number, (n, p) in enumerate([(32, 65537), (64, 0x3FFFFFFDF0001), (128, 0x3FFFFFFD18001)]):
        words = stream(b"privet encrypted", 64 * number, n)
        coefficients = [int.from_bytes(words[8 * i : 8 * i + 8], "little") % p for i in range(n)]
        values = " ".join(map(str, ntt(coefficients, p)))
        lines.append(f"ntt {p} {' '.join(map(str, coefficients))} = {values}")
    for shape in [(2, 3, 4, (2, 2, 3)), (3, 5, 2, (2, 4, 2)), (1, 7, 5, (1, 3, 4))]:
        lines += matmul_packing(*shape)
    return lines


def main() -> None:
    fips = aes(bytes(range(16)), bytes.fromhex("00112233445566778899aabbccddeeff"))
    assert fips.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a", "AES disagrees with FIPS 197"
    (HERE / "prg.txt").write_text("\n".join(prg_vectors()) + "\n")
    (HERE / "compare.txt").write_text("\n".join(compare_vectors()) + "\n")
    (HERE / "he.txt").write_text("\n".join(he_vectors()) + "\n")
    (HERE / "ot.txt").write_text("\n".join(ot_vectors()) + "\n")


if __name__ == "__main__":
    main()
