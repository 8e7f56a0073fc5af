// CUDA's words for g++, so that kernels run as they are written where there is no GPU. Included before a kernel's text.
//
// One block after another on one thread of the system; a block's threads are contexts that run until they meet the others.
// Seeds choose the order in which they run, and shared memory starts with garbage: a missing barrier shows in the results.
// What is not shown: the weak order of a GPU's memory within a run between two barriers, and time.
#pragma once
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <utility>
#include <vector>

#define SHIM
#define __global__
#define __device__ static inline
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)

struct alignas(16) uint4 { unsigned int x, y, z, w; };
struct alignas(8) uint2 { unsigned int x, y; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct dim3 { unsigned int x, y, z; };

namespace shim {

constexpr unsigned WARP = 32;
constexpr size_t SHARED = 227 * 1024, STACK = 64 * 1024;

// Those who meet: a block, or a warp. Values of two meetings in a row stay apart, as the fastest may be at the next one.
struct Meeting {
    unsigned size, arrived = 0, done = 0;
    const void *place = nullptr;
    unsigned long long values[2][WARP][8] = {};
    explicit Meeting(unsigned n = 0) : size(n) {}
};

struct Thread {
    ucontext_t start;
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    dim3 index;
    unsigned number;
    bool started, ended;
};

static jmp_buf scheduler;
static std::vector<Thread> threads;
static std::vector<Meeting> warps;
static Meeting block;
static Thread *now;
static dim3 grid, block_size, block_index;
static bool moved;
static void (*body)(void **);
static void **arguments;
static const char *failure;

// Let the others run. Contexts of the system start a thread; jumps, which ask the system nothing, go to and fro.
static void leave() {
    if (!_setjmp(now->place)) _longjmp(scheduler, 1);
}

static void resume() {
    if (_setjmp(scheduler)) return;
    if (now->started) _longjmp(now->place, 1);
    now->started = true;
    setcontext(&now->start);
}

// End the launch from within a thread: it never runs on.
[[noreturn]] static void fail(const char *what) {
    failure = what;
    for (;;) leave();
}

// Wait for all of a meeting at one place of the text; `place` is an address that stands for it.
static unsigned meet(Meeting &m, const void *place) {
    if (m.arrived > 0 && m.place != place) fail("threads wait for each other at different places");
    m.place = place;
    unsigned round = m.done;
    moved = true;
    if (++m.arrived == m.size) {
        m.arrived = 0;
        m.done++;
    }
    while (m.done == round) leave();
    return round;
}

// Lay down up to 8 words of this lane and get those of all lanes of the warp.
static auto &exchange(const void *place, const unsigned long long *words, unsigned count) {
    Meeting &m = warps[now->number / WARP];
    std::memcpy(m.values[m.done % 2][now->number % WARP], words, 8 * count);
    unsigned round = meet(m, place);
    return m.values[round % 2];
}

static void enter() {
    body(arguments);
    now->ended = true;
    moved = true;
    leave();
}

template <class... P> struct Call {
    template <void (*KERNEL)(P...), size_t... I> static void with(void **a, std::index_sequence<I...>) {
        KERNEL(*static_cast<std::remove_cv_t<P> *>(a[I])...);
    }
};
template <auto KERNEL, class... P> void call(void **a, void (*)(P...)) {
    Call<P...>::template with<KERNEL>(a, std::index_sequence_for<P...>());
}

static_assert(sizeof(void *) == 8);
extern char memory[SHARED];

// Dimensions as of a launch; `shared` bytes of shared memory, `seed` of the order. Null, or what went wrong.
static const char *launch(const unsigned *dims, size_t shared, uint64_t seed, void (*kernel)(void **),
                          void **a) {
    grid = {dims[0], dims[1], dims[2]};
    block_size = {dims[3], dims[4], dims[5]};
    body = kernel;
    arguments = a;
    failure = nullptr;
    if (shared > SHARED) return "more shared memory than there is";
    unsigned count = block_size.x * block_size.y * block_size.z;
    for (unsigned b = 0; b < grid.x * grid.y * grid.z; b++) {
        block_index = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        std::memset(memory, 0xa5, SHARED);
        threads.clear();
        threads.resize(count);
        block = Meeting(count);
        warps.assign((count + WARP - 1) / WARP, Meeting(WARP));
        if (count % WARP) warps.back().size = count % WARP;
        std::vector<unsigned> order(count);
        for (unsigned t = 0; t < count; t++) {
            Thread &thread = threads[t];
            thread.stack.reset(new char[STACK]);
            thread.index = {t % block_size.x, t / block_size.x % block_size.y, t / block_size.x / block_size.y};
            thread.number = order[t] = t;
            thread.started = thread.ended = false;
            getcontext(&thread.start);
            thread.start.uc_stack.ss_sp = thread.stack.get();
            thread.start.uc_stack.ss_size = STACK;
            thread.start.uc_link = nullptr;
            makecontext(&thread.start, enter, 0);
        }
        for (unsigned left = count; left > 0;) {
            // Forwards, backwards, or shuffled anew each time round.
            for (unsigned t = count - 1; seed > 1 && t > 0; t--) {
                seed = (seed * 6364136223846793005u + 1442695040888963407u) | 2;
                std::swap(order[t], order[(seed >> 33) % (t + 1)]);
            }
            moved = false;
            for (unsigned t = 0; t < count; t++) {
                now = &threads[order[seed == 1 ? count - 1 - t : t]];
                if (now->ended) continue;
                resume();
                if (failure) return failure;
                left -= now->ended;
            }
            if (left > 0 && !moved) return "threads wait for others that do not come";
        }
        // Nothing behind what the launch asked for was touched.
        for (size_t i = shared; i < SHARED; i++) {
            if (memory[i] != (char)0xa5) return "a write behind the shared memory asked for";
        }
    }
    return nullptr;
}

} // namespace shim

#define threadIdx (shim::now->index)
#define blockIdx (shim::block_index)
#define blockDim (shim::block_size)
#define gridDim (shim::grid)

// An address that stands for a place of the text.
#define SHIM_PLACE ([] { static const char place = 0; return (const void *)&place; }())

#define __syncthreads() ((void)shim::meet(shim::block, SHIM_PLACE))
#define __ballot_sync(mask, vote) shim_ballot(SHIM_PLACE, mask, vote)

static inline unsigned shim_ballot(const void *place, unsigned mask, bool vote) {
    if (mask != ~0u) shim::fail("only whole warps vote here");
    unsigned long long word = vote;
    auto &votes = shim::exchange(place, &word, 1);
    unsigned out = 0;
    for (unsigned l = 0; l < shim::WARP; l++) out |= (unsigned)votes[l][0] << l;
    return out;
}

// A word of shared memory, in the bank of this lane alone.
static inline unsigned shim_own_bank(const char *at) {
    if ((at - shim::memory) / 4 % 32 != shim::now->number % shim::WARP) shim::fail("a lane reads another one's bank");
    return *(const unsigned *)at;
}

static inline unsigned __popc(unsigned v) { return (unsigned)__builtin_popcount(v); }

// Byte i of the result is the byte of b:a that nibble i of the selector names.
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned out = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned nibble = selector >> (4 * i) & 15;
        if (nibble > 7) shim::fail("a byte permutation that copies signs");
        out |= (unsigned)(both >> (8 * nibble) & 255) << (8 * i);
    }
    return out;
}

static inline void atomicAdd(unsigned long long *to, unsigned long long v) { *to += v; }

// What a tensor core does with the warp's registers: PTX, mma.m16n8k32 of u8. Column k of row i of a, and row k of column j of
// b, are bytes of words that the lanes (i or j) % 8 * 4 + k % 16 / 4 hold.
static inline void shim_multiply(const void *place, unsigned (&c)[4], const uint4 &a, const uint2 &b) {
    const unsigned long long words[6] = {a.x, a.y, a.z, a.w, b.x, b.y};
    auto &all = shim::exchange(place, words, 6);
    unsigned lane = shim::now->number % shim::WARP;
    for (unsigned part = 0; part < 4; part++) {
        unsigned i = lane / 4 + part / 2 * 8, j = lane % 4 * 2 + part % 2;
        for (unsigned k = 0; k < 32; k++) {
            unsigned left = (unsigned)all[i % 8 * 4 + k % 16 / 4][i / 8 + k / 16 * 2] >> k % 4 * 8 & 255;
            unsigned right = (unsigned)all[j * 4 + k % 16 / 4][4 + k / 16] >> k % 4 * 8 & 255;
            c[part] += left * right;
        }
    }
}
#define multiply_bytes(c, a, b) shim_multiply(SHIM_PLACE, c, a, b)

// What tests call: one launch of a kernel.
#define SHIM_KERNEL(name)                                                                                     \
    alignas(16) char shim::memory[shim::SHARED] asm("shared_memory");                                         \
    extern "C" const char *shim_launch(const unsigned *dims, size_t shared, uint64_t seed, void **arguments) {        \
        return shim::launch(dims, shared, seed, [](void **a) { shim::call<name>(a, name); }, arguments);              \
    }
