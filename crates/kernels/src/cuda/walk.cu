// The walk of comparison keys (half-tree, Guo et al., EUROCRYPT 2023; src/compare): a thread a key, a bit a key out.
//
// Secrets are seeds, correction words and what is computed of them. They choose masks and table entries (aes.cuh), never
// a branch or a place in memory of other lanes. Points, shapes and hash keys are public.

// `keys` as CompareShape::key_bytes says; `points` a word a key; `lt` and `eq` hold 32 keys a word, an even number of words, padding bits zero.
// Without `eq` that bit is not computed.
struct WalkArgs {
    const uint4 *keys;
    const u64 *points;
    u32 *lt;
    u32 *eq;
    u64 count;
    u32 bits; // of the domain, 1 to 64
    u32 unused;
    Schedule inner;
    Schedule leaf;
};

// Keys to a row of the layout.
#define ROW 64
#define LEAF_BITS 7

// AES(sigma(s)) ^ sigma(s), sigma(l || r) = (l ^ r || l).
__device__ uint4 hashed(const Schedule &keys, uint4 s, u32 lane) {
    uint4 turned;
    turned.x = s.z;
    turned.y = s.w;
    turned.z = s.x ^ s.z;
    turned.w = s.y ^ s.w;
    uint4 h = encrypt(keys, turned, lane);
    h.x ^= turned.x;
    h.y ^= turned.y;
    h.z ^= turned.z;
    h.w ^= turned.w;
    return h;
}

// H(s) ^ t CW; t is the lowest bit of s.
__device__ uint4 corrected(const Schedule &keys, uint4 s, uint4 word, u32 lane) {
    uint4 h = hashed(keys, s, lane);
    u32 control = 0 - (s.x & 1);
    h.x ^= word.x & control;
    h.y ^= word.y & control;
    h.z ^= word.z & control;
    h.w ^= word.w & control;
    return h;
}

// Bits above place `at` (0 to 127) of word `w` of a leaf.
__device__ u32 above(u32 at, u32 w) {
    int shift = (int)at + 1 - 32 * (int)w;
    return shift <= 0 ? ~0u : shift >= 32 ? 0 : ~0u << shift;
}

extern "C" __global__ void __launch_bounds__(WALK_THREADS, WALK_BLOCKS) walk(const __grid_constant__ WalkArgs a) {
    write_tables();
    u32 number = threadIdx.x % LANES, lane = 4 * number;
    u32 depth = a.bits > LEAF_BITS ? a.bits - LEAF_BITS : 0;
    // Warps stay whole, because all lanes vote: those behind the last key walk it once more.
    u64 start = (u64)blockIdx.x * blockDim.x + threadIdx.x - number;
    // Whole words of 64 bits are written.
    u64 padded = (a.count + ROW - 1) / ROW * ROW;
    for (; start < padded; start += (u64)gridDim.x * blockDim.x) {
        u64 i = start + number < a.count ? start + number : a.count - 1;
        u64 first = i / ROW * ROW;
        u32 width = a.count - first < ROW ? (u32)(a.count - first) : ROW;
        const uint4 *word = a.keys + first * (depth + 2) + i % ROW;
        u64 point = a.points[i];
        // The next bit of the path stands on top.
        u64 path = depth > 0 ? point << (64 - a.bits) : 0;
        uint4 s = *word;
        u32 siblings = 0;
        for (u32 level = 0; level < depth; level++) {
            word += width;
            uint4 l = corrected(a.inner, s, *word, lane);
            u32 right = (u32)((int)(path >> 32) >> 31);
            path <<= 1;
            siblings ^= (l.x ^ s.x) & ~right;
            s.x = l.x ^ (s.x & right);
            s.y = l.y ^ (s.y & right);
            s.z = l.z ^ (s.z & right);
            s.w = l.w ^ (s.w & right);
        }
        word += width;
        uint4 leaf = corrected(a.leaf, s, *word, lane);
        u32 at = (u32)point & 127;
        u32 ones = (leaf.x & above(at, 0)) ^ (leaf.y & above(at, 1)) ^ (leaf.z & above(at, 2)) ^ (leaf.w & above(at, 3));
        bool counts = start + number < a.count;
        u32 less = __ballot_sync(~0u, counts && ((__popc(ones) ^ siblings) & 1));
        if (number == 0) {
            a.lt[start / LANES] = less;
        }
        if (a.eq) {
            u32 of = at < 32 ? leaf.x : at < 64 ? leaf.y : at < 96 ? leaf.z : leaf.w;
            u32 equal = __ballot_sync(~0u, counts && (of >> (at % 32) & 1));
            if (number == 0) {
                a.eq[start / LANES] = equal;
            }
        }
    }
}
