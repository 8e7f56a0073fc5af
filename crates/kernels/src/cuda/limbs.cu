// The matrix product over Z_2^(8 LIMBS) by tensor cores: out += x w. Words are cut into bytes, and byte i of x times byte j of
// w counts 2^(8 (i + j)); pairs with i + j >= LIMBS vanish. Of 64 bits 36 products of bytes remain.
//
// Products with the same i + j are added up in one word of 32 bits. Below i + j = 4 this must not wrap: 4 * 255^2 * 8192 is
// less than 2^32, so a block takes at most 8192 elements of k. From there on what wraps is a multiple of 2^64.
//
// A block makes TILE_M x TILE_N elements. No step depends on values.

extern __shared__ u32 shared_memory[];

// `deep` of the arguments (product.cuh) is a multiple of STEP.

// Elements of k of one multiplication of the tensor cores, and how many rows of x and columns of w it takes.
#define STEP 32
#define ROWS 16
#define COLUMNS 8
// A warp makes DOWN of these below each other and ACROSS side by side.
#define WARPS_ACROSS (TILE_N / (COLUMNS * ACROSS))
#define THREADS (32 * WARPS_ACROSS * (TILE_M / (ROWS * DOWN)))
// Units of four elements of k that a thread brings in for a step, of each operand.
#define UNITS_X (TILE_M * STEP / 4 / THREADS)
#define UNITS_W (TILE_N * STEP / 4 / THREADS)
// Words of a step's tiles: registers of a warp, limb by limb.
#define WORDS_X (TILE_M * STEP * LIMBS / 4)
#define STAGE (WORDS_X + TILE_N * STEP * LIMBS / 4)

#ifndef SHIM
// c += a b for 16 x 32 and 32 x 8 bytes and 16 x 8 words; a warp holds them together, as PTX defines for m16n8k32.
__device__ void multiply_bytes(u32 (&c)[4], const uint4 &a, const uint2 &b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}
#endif

// Four elements of k of one row of x or column of w.
struct Unit {
    u64 element[4];
};

// Word l gets byte l of all four.
__device__ void cut(u32 (&limbs)[8], const Unit &unit) {
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 e[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            e[i] = (u32)(unit.element[i] >> (32 * half));
        }
        u32 p = __byte_perm(e[0], e[1], 0x5140), q = __byte_perm(e[2], e[3], 0x5140);
        u32 r = __byte_perm(e[0], e[1], 0x7362), s = __byte_perm(e[2], e[3], 0x7362);
        limbs[4 * half] = __byte_perm(p, q, 0x5410);
        limbs[4 * half + 1] = __byte_perm(p, q, 0x7632);
        limbs[4 * half + 2] = __byte_perm(r, s, 0x5410);
        limbs[4 * half + 3] = __byte_perm(r, s, 0x7632);
    }
}

// Which unit a thread brings in: its row or column, and which four elements of k. What a warp reads together is one piece or
// few, and what it writes together lies in different banks.
struct Place {
    u32 line, quarter;
};

__device__ Place of_x(u32 unit) {
    Place p = {unit / 128 * ROWS + unit / 16 % 8 + unit / 8 % 2 * 8, unit % 8};
    return p;
}

__device__ Place of_w(u32 unit, u32 transposed) {
    Place by_rows = {unit / 64 * 8 + unit / 4 % 8, unit % 4 + unit / 32 % 2 * 4};
    Place by_columns = {unit / 64 * 8 + unit % 8, unit / 8 % 8};
    return transposed ? by_rows : by_columns;
}

// A unit of a matrix whose rows have `k` elements one behind the other; `wide` if pairs lie at multiples of 16 bytes.
__device__ Unit read_row(const u64 *from, u32 row, u32 rows, u32 at, u32 end, u32 k, bool wide) {
    Unit unit;
    from += (u64)row * k + at;
    if (wide && row < rows && at + 4 <= end) {
        ulonglong2 low = ((const ulonglong2 *)from)[0], high = ((const ulonglong2 *)from)[1];
        unit.element[0] = low.x;
        unit.element[1] = low.y;
        unit.element[2] = high.x;
        unit.element[3] = high.y;
        return unit;
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        unit.element[i] = row < rows && at + i < end ? from[i] : 0;
    }
    return unit;
}

// A unit of w as [k, n].
__device__ Unit read_column(const u64 *from, u32 column, u32 n, u32 at, u32 end) {
    Unit unit;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        unit.element[i] = column < n && at + i < end ? from[(u64)(at + i) * n + column] : 0;
    }
    return unit;
}

extern "C" __global__ void __launch_bounds__(THREADS, LIMBS_BLOCKS) limbs(const __grid_constant__ ProductArgs a) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 across = warp % WARPS_ACROSS * ACROSS, down = warp / WARPS_ACROSS * DOWN;
    u32 row = (a.rows_first ? blockIdx.x : blockIdx.y) * TILE_M;
    u32 column = (a.rows_first ? blockIdx.y : blockIdx.x) * TILE_N;
    u32 begin = blockIdx.z * a.deep, end = a.k - begin < a.deep ? a.k : begin + a.deep;
    u32 steps = (end - begin + STEP - 1) / STEP;
    bool wide_x = a.k % 2 == 0 && (u64)a.x % 16 == 0, wide_w = a.k % 2 == 0 && (u64)a.w % 16 == 0;
    u32 sum[DOWN][ACROSS][LIMBS][4] = {};
    Unit x[UNITS_X], w[UNITS_W];
    for (u32 step = 0; step <= steps; step++) {
        if (step < steps) {
            u32 at = begin + step * STEP;
#pragma unroll
            for (u32 i = 0; i < UNITS_X; i++) {
                Place p = of_x(threadIdx.x + i * THREADS);
                x[i] = read_row(a.x, row + p.line, a.m, at + 4 * p.quarter, end, a.k, wide_x);
            }
#pragma unroll
            for (u32 i = 0; i < UNITS_W; i++) {
                Place p = of_w(threadIdx.x + i * THREADS, a.transposed);
                w[i] = a.transposed ? read_row(a.w, column + p.line, a.n, at + 4 * p.quarter, end, a.k, wide_w)
                                    : read_column(a.w, column + p.line, a.n, at + 4 * p.quarter, end);
            }
        }
        if (step > 0) {
            // What the step before wrote, while this one's elements are on their way.
            const u32 *xs = shared_memory + (step - 1) % 2 * STAGE, *ws = xs + WORDS_X;
            uint2 r[ACROSS][LIMBS];
#pragma unroll
            for (u32 j = 0; j < ACROSS; j++) {
#pragma unroll
                for (u32 l = 0; l < LIMBS; l++) {
                    const u32 *from = ws + ((across + j) * LIMBS + l) * 64 + lane;
                    r[j][l].x = from[0];
                    r[j][l].y = from[32];
                }
            }
#pragma unroll
            for (u32 l = 0; l < LIMBS; l++) {
#pragma unroll
                for (u32 i = 0; i < DOWN; i++) {
                    uint4 left = ((const uint4 *)xs)[((down + i) * LIMBS + l) * 32 + lane];
#pragma unroll
                    for (u32 o = 0; l + o < LIMBS; o++) {
#pragma unroll
                        for (u32 j = 0; j < ACROSS; j++) {
                            multiply_bytes(sum[i][j][l + o], left, r[j][o]);
                        }
                    }
                }
            }
        }
        if (step < steps) {
            // The other half of the memory: who is late may still read this one.
            u32 *xs = shared_memory + step % 2 * STAGE, *ws = xs + WORDS_X;
#pragma unroll
            for (u32 i = 0; i < UNITS_X; i++) {
                Place p = of_x(threadIdx.x + i * THREADS);
                u32 holder = p.line % 8 * 4 + p.quarter % 4, place = p.line % ROWS / 8 + p.quarter / 4 * 2, limbs[8];
                cut(limbs, x[i]);
#pragma unroll
                for (u32 l = 0; l < LIMBS; l++) {
                    xs[((p.line / ROWS * LIMBS + l) * 32 + holder) * 4 + place] = limbs[l];
                }
            }
#pragma unroll
            for (u32 i = 0; i < UNITS_W; i++) {
                Place p = of_w(threadIdx.x + i * THREADS, a.transposed);
                u32 holder = p.line % 8 * 4 + p.quarter % 4, limbs[8];
                cut(limbs, w[i]);
#pragma unroll
                for (u32 l = 0; l < LIMBS; l++) {
                    ws[(p.line / COLUMNS * LIMBS + l) * 64 + p.quarter / 4 * 32 + holder] = limbs[l];
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < DOWN; i++) {
#pragma unroll
        for (u32 j = 0; j < ACROSS; j++) {
#pragma unroll
            for (u32 part = 0; part < 4; part++) {
                u64 v = 0;
#pragma unroll
                for (u32 l = 0; l < LIMBS; l++) {
                    v += (u64)sum[i][j][l][part] << (8 * l);
                }
                u32 r = row + (down + i) * ROWS + lane / 4 + part / 2 * 8;
                u32 c = column + (across + j) * COLUMNS + lane % 4 * 2 + part % 2;
                if (r < a.m && c < a.n) {
                    atomicAdd(a.out + (u64)r * a.n + c, v);
                }
            }
        }
    }
}
