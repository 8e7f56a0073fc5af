// AES-128 by tables in shared memory, one private copy a lane. Text that kernels with AES begin with.
//
// Constant time: which entries a lane reads depends on secrets, but entry e of lane l lies at byte 256 e + 4 l, and of the
// second table 128 bytes further. So lane l reads bank l alone, whatever e is: no two lanes ever meet in a bank, and an
// access takes as long for every secret. Round keys are read at places that are known when the kernel is compiled.
//
// Words hold the bytes of FIPS 197's columns, the first one lowest.

typedef unsigned int u32;
typedef unsigned long long u64;

// Threads to a warp, and copies of the tables.
#define LANES 32
// Bytes from one entry to the next: both tables, all lanes.
#define ENTRY 256
// Bytes from an entry of the first table to that of the second one.
#define SECOND 128

// All shared memory of a block; the launch says how much. Tables take 256 * ENTRY bytes from its start.
extern __shared__ u32 shared_memory[];

// A schedule: 11 round keys of 4 words. Those of rounds 1 to 9 have their halves swapped, because they are added before
// two of four look-ups are turned by 16 bits.
struct Schedule {
    u32 words[44];
};

__device__ u32 turned(u32 v, u32 bits) { return v << bits | v >> (32 - bits); }

// The product in GF(2^8), x^8 + x^4 + x^3 + x + 1.
__device__ u32 product(u32 a, u32 b) {
    u32 sum = 0;
    for (u32 i = 0; i < 8; i++) {
        sum ^= (0 - (b >> i & 1)) & a;
        a = a << 1 ^ ((0 - (a >> 7)) & 0x11b);
    }
    return sum;
}

// The S-box of FIPS 197, section 5.1.1: the inverse v^254, and an affine map.
__device__ u32 substitute(u32 v) {
    u32 inverse = 1, square = v;
    for (u32 i = 0; i < 7; i++) {
        square = product(square, square);
        inverse = product(inverse, square);
    }
    u32 twice = inverse | inverse << 8;
    return (inverse ^ twice >> 4 ^ twice >> 5 ^ twice >> 6 ^ twice >> 7 ^ 0x63) & 0xff;
}

// Write the tables; all threads of the block. Entry e of the first is S(e) times the column (2, 1, 1, 3); the second is the
// first turned by 8 bits. The other two tables of the usual four are these turned by 16.
__device__ void write_tables() {
    for (u32 e = threadIdx.x; e < 256; e += blockDim.x) {
        u32 s = substitute(e), twice = product(s, 2);
        shared_memory[e * (ENTRY / 4)] = twice | s << 8 | s << 16 | (twice ^ s) << 24;
    }
    __syncthreads();
    // Lane 0's copy is there: whoever reads it writes other words.
    for (u32 i = threadIdx.x; i < 256 * LANES; i += blockDim.x) {
        u32 *entry = shared_memory + i / LANES * (ENTRY / 4), lane = i % LANES, v = entry[0];
        if (lane > 0) {
            entry[lane] = v;
        }
        entry[SECOND / 4 + lane] = turned(v, 8);
    }
    __syncthreads();
}

// Tests put a check of the bank here.
#define READ(at) (*(const u32 *)(at))

// The entry of byte BYTE of `word`; `lane` is 4 times the lane. One byte permutation makes the address.
template <u32 BYTE, u32 TABLE>
__device__ u32 entry(u32 word, u32 lane) {
    return READ((const char *)shared_memory + TABLE + __byte_perm(word, lane, 0x5504 | BYTE << 4));
}

// A column of a round; `a` to `d` are the columns that its bytes come from.
__device__ u32 column(u32 a, u32 b, u32 c, u32 d, u32 key, u32 lane) {
    u32 upper = entry<2, 0>(c, lane) ^ entry<3, SECOND>(d, lane) ^ key;
    return entry<0, 0>(a, lane) ^ entry<1, SECOND>(b, lane) ^ __byte_perm(upper, 0, 0x1032);
}

// A column of the last round, which mixes no columns: S stands in the bytes 1 and 2 of the first table, 3 of the second.
__device__ u32 last_column(u32 a, u32 b, u32 c, u32 d, u32 lane) {
    u32 low = __byte_perm(entry<0, 0>(a, lane), entry<1, 0>(b, lane), 0x0051);
    u32 high = __byte_perm(entry<2, 0>(c, lane), entry<3, SECOND>(d, lane), 0x7200);
    return __byte_perm(low, high, 0x7610);
}

// AES-128 of `v`; `lane` is 4 times the lane. The tables have been written.
__device__ uint4 encrypt(const Schedule &keys, uint4 v, u32 lane) {
    v.x ^= keys.words[0];
    v.y ^= keys.words[1];
    v.z ^= keys.words[2];
    v.w ^= keys.words[3];
#pragma unroll
    for (u32 r = 4; r < 40; r += 4) {
        u32 x = column(v.x, v.y, v.z, v.w, keys.words[r], lane);
        u32 y = column(v.y, v.z, v.w, v.x, keys.words[r + 1], lane);
        u32 z = column(v.z, v.w, v.x, v.y, keys.words[r + 2], lane);
        u32 w = column(v.w, v.x, v.y, v.z, keys.words[r + 3], lane);
        v.x = x;
        v.y = y;
        v.z = z;
        v.w = w;
    }
    uint4 out;
    out.x = last_column(v.x, v.y, v.z, v.w, lane) ^ keys.words[40];
    out.y = last_column(v.y, v.z, v.w, v.x, lane) ^ keys.words[41];
    out.z = last_column(v.z, v.w, v.x, v.y, lane) ^ keys.words[42];
    out.w = last_column(v.w, v.x, v.y, v.z, lane) ^ keys.words[43];
    return out;
}
