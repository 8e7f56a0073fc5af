// The matrix product over Z_2^64 by 32-bit multiplications: out += x w. A block of 16 x 16 threads makes TILE_M x TILE_N
// elements, a thread every sixteenth pair of rows and columns. Blocks of one tile share k among them: sums modulo 2^64 do not
// depend on their order.
//
// No step depends on values.

extern __shared__ u64 shared_memory[];

#define SIDE 16
#define THREADS (SIDE * SIDE)
// Elements of k at a time.
#define DEEP 8
// Pairs of rows and columns of a thread.
#define PAIRS_M (TILE_M / (2 * SIDE))
#define PAIRS_N (TILE_N / (2 * SIDE))
// Words from one k of a tile to the next: two more than the tile, so that rows written together lie in different banks.
#define PITCH_M (TILE_M + 2)
#define PITCH_N (TILE_N + 2)
// Both operands of one step.
#define STAGE (DEEP * (PITCH_M + PITCH_N))

// This thread's elements of a tile whose rows lie one behind the other in memory, `k` words each: of x, or of w if transposed.
template <u32 TILE>
__device__ void read_rows(u64 (&to)[TILE * DEEP / THREADS], const u64 *from, u32 row, u32 rows, u32 deep, u32 end,
                          u32 k) {
#pragma unroll
    for (u32 i = 0; i < TILE * DEEP / THREADS; i++) {
        u32 at = threadIdx.x + i * THREADS, r = row + at / DEEP, d = deep + at % DEEP;
        to[i] = r < rows && d < end ? from[(u64)r * k + d] : 0;
    }
}

template <u32 TILE>
__device__ void write_rows(u64 *tile, const u64 (&from)[TILE * DEEP / THREADS]) {
#pragma unroll
    for (u32 i = 0; i < TILE * DEEP / THREADS; i++) {
        u32 at = threadIdx.x + i * THREADS;
        tile[at % DEEP * (TILE + 2) + at / DEEP] = from[i];
    }
}

// The same of w as [k, n]: columns of a row lie one behind the other.
__device__ void read_columns(u64 (&to)[TILE_N * DEEP / THREADS], const u64 *from, u32 column, u32 n, u32 deep, u32 end) {
#pragma unroll
    for (u32 i = 0; i < TILE_N * DEEP / THREADS; i++) {
        u32 at = threadIdx.x + i * THREADS, d = deep + at / TILE_N, c = column + at % TILE_N;
        to[i] = d < end && c < n ? from[(u64)d * n + c] : 0;
    }
}

__device__ void write_columns(u64 *tile, const u64 (&from)[TILE_N * DEEP / THREADS]) {
#pragma unroll
    for (u32 i = 0; i < TILE_N * DEEP / THREADS; i++) {
        u32 at = threadIdx.x + i * THREADS;
        tile[at / TILE_N * PITCH_N + at % TILE_N] = from[i];
    }
}

// sum + a b modulo 2^64: one product of 64 bits, two of 32.
__device__ u64 multiplied(u64 sum, u64 a, u64 b) {
    u32 al = (u32)a, ah = (u32)(a >> 32), bl = (u32)b, bh = (u32)(b >> 32);
    sum += (u64)al * bl;
    u32 high = (u32)(sum >> 32) + al * bh + ah * bl;
    return (u64)high << 32 | (u32)sum;
}

extern "C" __global__ void __launch_bounds__(THREADS, PRODUCT_BLOCKS) product(const __grid_constant__ ProductArgs a) {
    u32 across = threadIdx.x % SIDE, down = threadIdx.x / SIDE;
    u32 row = (a.rows_first ? blockIdx.x : blockIdx.y) * TILE_M;
    u32 column = (a.rows_first ? blockIdx.y : blockIdx.x) * TILE_N;
    u64 sum[2 * PAIRS_M][2 * PAIRS_N] = {};
    u64 x[TILE_M * DEEP / THREADS], w[TILE_N * DEEP / THREADS];
    u32 begin = blockIdx.z * a.deep, end = a.k - begin < a.deep ? a.k : begin + a.deep;
    u32 steps = (end - begin + DEEP - 1) / DEEP;
    for (u32 step = 0; step <= steps; step++) {
        if (step < steps) {
            read_rows<TILE_M>(x, a.x, row, a.m, begin + step * DEEP, end, a.k);
            if (a.transposed) {
                read_rows<TILE_N>(w, a.w, column, a.n, begin + step * DEEP, end, a.k);
            } else {
                read_columns(w, a.w, column, a.n, begin + step * DEEP, end);
            }
        }
        if (step > 0) {
            // What the step before wrote, while this one's elements are on their way.
            const u64 *xs = shared_memory + (step - 1) % 2 * STAGE, *ws = xs + DEEP * PITCH_M;
#pragma unroll
            for (u32 d = 0; d < DEEP; d++) {
                ulonglong2 l[PAIRS_M], r[PAIRS_N];
#pragma unroll
                for (u32 i = 0; i < PAIRS_M; i++) {
                    l[i] = *(const ulonglong2 *)(xs + d * PITCH_M + 2 * (i * SIDE + down));
                }
#pragma unroll
                for (u32 j = 0; j < PAIRS_N; j++) {
                    r[j] = *(const ulonglong2 *)(ws + d * PITCH_N + 2 * (j * SIDE + across));
                }
#pragma unroll
                for (u32 i = 0; i < PAIRS_M; i++) {
#pragma unroll
                    for (u32 j = 0; j < PAIRS_N; j++) {
                        sum[2 * i][2 * j] = multiplied(sum[2 * i][2 * j], l[i].x, r[j].x);
                        sum[2 * i][2 * j + 1] = multiplied(sum[2 * i][2 * j + 1], l[i].x, r[j].y);
                        sum[2 * i + 1][2 * j] = multiplied(sum[2 * i + 1][2 * j], l[i].y, r[j].x);
                        sum[2 * i + 1][2 * j + 1] = multiplied(sum[2 * i + 1][2 * j + 1], l[i].y, r[j].y);
                    }
                }
            }
        }
        if (step < steps) {
            // The other half of the memory: who is late may still read this one.
            u64 *xs = shared_memory + step % 2 * STAGE, *ws = xs + DEEP * PITCH_M;
            write_rows<TILE_M>(xs, x);
            if (a.transposed) {
                write_rows<TILE_N>(ws, w);
            } else {
                write_columns(ws, w);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < 2 * PAIRS_M; i++) {
#pragma unroll
        for (u32 j = 0; j < 2 * PAIRS_N; j++) {
            u32 r = row + 2 * (i / 2 * SIDE + down) + i % 2, c = column + 2 * (j / 2 * SIDE + across) + j % 2;
            if (r < a.m && c < a.n) {
                atomicAdd(a.out + (u64)r * a.n + c, sum[i][j]);
            }
        }
    }
}
