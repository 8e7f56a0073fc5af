// Comparison by chunks, an evaluator's first step: shares of `lt` and `eq` of every chunk at the public point, from its shares
// of the tables (src/chunks). A lane a comparison, a warp a word of 32 bits of each plane.
//
// Points are public, so a lane may read the table at its point. What is read there is secret and goes through the same
// operations whatever it is.

typedef unsigned int u32;
typedef unsigned long long u64;

// Words of 64 bits of a plane in a whole block.
#define SIDE 8

// `points` a word a comparison; `tables` and `out` are planes. `sizes` are the bits of each chunk, from the top, `planes` how
// many each of the buffers has.
struct LeavesArgs {
    const u64 *points;
    const u32 *tables;
    u32 *out;
    u64 count;
    u32 table_planes, out_planes;
    u32 chunks, bits;
    u32 leads, equal;
    unsigned char sizes[64];
};

extern "C" __global__ void __launch_bounds__(PLANES_THREADS) leaves(const __grid_constant__ LeavesArgs a) {
    u32 lane = threadIdx.x % 32;
    u64 words = (a.count + 63) / 64, step = (u64)gridDim.x * blockDim.x / 32;
    for (u64 word = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32; word < 2 * words; word += step) {
        u64 first = word / (2 * SIDE) * SIDE;
        u32 side = words - first < SIDE ? 2 * (u32)(words - first) : 2 * SIDE, at = word % (2 * SIDE);
        const u32 *table = a.tables + 2 * first * a.table_planes + at;
        u32 *out = a.out + 2 * first * a.out_planes + at;
        // behind the last comparison points are zero, as bits of padding are in planes
        u64 i = 32 * word + lane, point = i < a.count ? a.points[i] : 0;
        u32 shift = a.bits;
        for (u32 c = 0; c < a.chunks; c++) {
            u32 size = a.sizes[c], last = (1u << size) - 1;
            shift -= size;
            u32 x = (u32)(point >> shift) & last;
            u32 here = x < last ? table[x * side] >> lane & 1 : 0;
            u32 before = x > 0 ? table[(x - 1) * side] >> lane & 1 : a.leads;
            table += last * side;
            u32 less = __ballot_sync(~0u, here), equal = __ballot_sync(~0u, here ^ before);
            if (!a.equal) {
                if (lane == 0) {
                    *out = less;
                }
                out += side;
            }
            if (a.equal || c + 1 < a.chunks) {
                if (lane == 0) {
                    *out = equal;
                }
                out += side;
            }
        }
    }
}
