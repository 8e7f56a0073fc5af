// What both matrix products are given.

typedef unsigned int u32;
typedef unsigned long long u64;

// `x` is [m, k], `out` [m, n]; `w` is [k, n], or [n, k] if `transposed`. All row by row. A block takes `deep` elements of k.
// Blocks side by side in the grid are those of one column of tiles if `rows_first`, else of one row.
struct ProductArgs {
    const u64 *x;
    const u64 *w;
    u64 *out;
    u32 m, k, n;
    u32 transposed;
    u32 deep;
    u32 rows_first;
};
