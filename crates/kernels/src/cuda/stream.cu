// The stream of a seed (crates/prg): AES in counter mode, two words of 64 bits a block, reduced to a ring.
//
// The key is secret. It stays in the kernel's parameters and is read at places that are known when the kernel is compiled.

// Words 2 (first + i) and on of the stream into `out`, `words` of them; `mask` keeps a ring's bits.
struct StreamArgs {
    u64 *out;
    u64 words;
    u64 first;
    u64 mask;
    Schedule key;
};

extern "C" __global__ void __launch_bounds__(STREAM_THREADS, STREAM_BLOCKS) stream(const __grid_constant__ StreamArgs a) {
    write_tables();
    u32 lane = threadIdx.x % LANES * 4;
    u64 blocks = a.words / 2 + a.words % 2;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += (u64)gridDim.x * blockDim.x) {
        u64 counter = a.first + i;
        uint4 plain;
        plain.x = (u32)counter;
        plain.y = (u32)(counter >> 32);
        plain.z = 0;
        plain.w = 0;
        uint4 v = encrypt(a.key, plain, lane);
        v.x &= (u32)a.mask;
        v.y &= (u32)(a.mask >> 32);
        v.z &= (u32)a.mask;
        v.w &= (u32)(a.mask >> 32);
        if (2 * i + 1 < a.words) {
            ((uint4 *)a.out)[i] = v;
        } else {
            a.out[2 * i] = (u64)v.y << 32 | v.x;
        }
    }
}
