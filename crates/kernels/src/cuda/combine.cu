// Comparison by chunks, an evaluator's next steps: shares of the next level's items from what was opened, its shares of the
// products and of the masks (src/chunks). A thread a word of 32 bits of each plane.
//
// All that is not public goes through the same operations whatever it is.

typedef unsigned int u32;
typedef unsigned long long u64;

// Words of 64 bits of a plane in a whole block.
#define SIDE 8

// Planes of `words` words of 64 bits; `sizes` are the items of each group, from the top.
struct CombineArgs {
    const u32 *opened;
    const u32 *products;
    const u32 *masks;
    u32 *out;
    u64 words;
    u32 opened_planes, product_planes, out_planes;
    u32 groups, leads, equal;
    unsigned char sizes[64];
};

// This thread's word of every plane of the block.
struct Planes {
    const u32 *opened, *products, *masks;
    u32 *out;
    u32 side;
};

__device__ u32 next_product(Planes &p) {
    u32 v = *p.products;
    p.products += p.side;
    return v;
}

__device__ void put(Planes &p, u32 v) {
    *p.out = v;
    p.out += p.side;
}

// The polynomials of a group of G items by folding one variable after the other: with f[S] the share of what is multiplied
// by the masks S, (q & f[S]) ^ f[S + j] is that of what is multiplied by eq_j = q ^ a_j too.
template <u32 G, bool EQUAL, bool LAST>
__device__ void fold(Planes &p, u32 leads) {
    // an item's planes: `lt` and `eq`, or `eq` alone; the last item of all has no `eq`
    u32 each = EQUAL ? p.side : 2 * p.side, eq = EQUAL ? 0 : p.side;
    constexpr u32 VARIABLES = LAST && !EQUAL ? G - 1 : G;
    // Small groups stay in registers.
    constexpr u32 TIMES = G <= 5 ? 32 : 1;
    u32 f[1 << G] = {};
    f[0] = leads ? ~0u : 0;
#pragma unroll TIMES
    for (u32 set = 3; set < 1u << VARIABLES; set++) {
        f[set] = set & (set - 1) ? next_product(p) : 0;
    }
#pragma unroll TIMES
    for (u32 j = 0; j < VARIABLES; j++) {
        f[1u << j] = p.masks[j * each + eq];
    }
    if (!EQUAL) {
        // from the last item on: w[S] is the share of the masks S times lt_i ^ eq_i (lt_(i+1) ^ eq_(i+1) (...))
        u32 w[1 << G] = {};
#pragma unroll TIMES
        for (u32 back = 1; back <= G; back++) {
            u32 i = G - back, l = p.opened[i * each], q = back > 1 ? p.opened[i * each + eq] : 0;
#pragma unroll TIMES
            for (u32 set = 0; set < 1u << (G - 1); set++) {
                if (set < 1u << i) {
                    u32 less = (l & f[set]) ^ (set == 0 ? p.masks[i * each] : next_product(p));
                    w[set] = back > 1 ? less ^ (q & w[set]) ^ w[set | 1u << i] : less;
                }
            }
        }
        put(p, w[0]);
    }
    if (EQUAL || !LAST) {
#pragma unroll TIMES
        for (u32 back = 1; back <= G; back++) {
            u32 i = G - back, q = p.opened[i * each + eq];
#pragma unroll TIMES
            for (u32 set = 0; set < 1u << (G - 1); set++) {
                if (set < 1u << i) {
                    f[set] = (q & f[set]) ^ f[set | 1u << i];
                }
            }
        }
        put(p, f[0]);
    }
    p.opened += G * each;
    p.masks += G * each;
}

// A group of at most G items.
template <u32 G, bool EQUAL, bool LAST>
__device__ void fold_some(u32 size, Planes &p, u32 leads) {
    if (size == G) {
        fold<G, EQUAL, LAST>(p, leads);
    } else if constexpr (G > 1) {
        fold_some<G - 1, EQUAL, LAST>(size, p, leads);
    }
}

extern "C" __global__ void __launch_bounds__(PLANES_THREADS) combine(const __grid_constant__ CombineArgs a) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 word = (u64)blockIdx.x * blockDim.x + threadIdx.x; word < 2 * a.words; word += step) {
        u64 first = word / (2 * SIDE) * SIDE;
        u32 side = a.words - first < SIDE ? 2 * (u32)(a.words - first) : 2 * SIDE, at = word % (2 * SIDE);
        Planes p = {a.opened + 2 * first * a.opened_planes + at, a.products + 2 * first * a.product_planes + at,
                    a.masks + 2 * first * a.opened_planes + at, a.out + 2 * first * a.out_planes + at, side};
        for (u32 g = 0; g < a.groups; g++) {
            if (a.equal) {
                fold_some<FAN, true, false>(a.sizes[g], p, a.leads);
            } else if (g + 1 < a.groups) {
                fold_some<FAN, false, false>(a.sizes[g], p, a.leads);
            } else {
                fold_some<FAN, false, true>(a.sizes[g], p, a.leads);
            }
        }
    }
}
