//! Rewrites of the captured graph, one a file. Each keeps the meaning over the real numbers. A rule names the operations
//! that it rewrites and keeps all others as they are: its wildcard is that, and nothing can be forgotten by it.

mod average;
mod average_grad;
mod batch_norm;
mod clamp;
mod conv_grad;
mod dead;
mod fold_affine;
mod fold_batchnorm;
mod fold_constants;
mod fold_scalars;
mod images;
mod join_relu;
mod leaky_relu;
mod matmul_parameter;
mod max_pool_grad;
mod positive;
mod sum_products;
mod swap_maxpool;
mod swap_maxpool_grad;

use super::draft::Draft;

/// A named rule.
type Rule = (&'static str, fn(&mut Draft<'_>));

/// The rules in the order in which they are applied.
const RULES: &[Rule] = &[
    ("fold_constants", fold_constants::apply),
    ("matmul_parameter", matmul_parameter::apply),
    ("fold_batchnorm", fold_batchnorm::apply),
    ("fold_affine", fold_affine::apply),
    ("batch_norm", batch_norm::apply),
    ("positive", positive::apply),
    ("swap_maxpool_grad", swap_maxpool_grad::apply),
    ("max_pool_grad", max_pool_grad::apply),
    ("conv_grad", conv_grad::apply),
    ("average_grad", average_grad::apply),
    ("average", average::apply),
    ("sum_products", sum_products::apply),
    ("fold_scalars", fold_scalars::apply),
    // before pools, which then pass a joined ReLU; and again for what the rules between make
    ("join_relu", join_relu::apply),
    ("swap_maxpool", swap_maxpool::apply),
    ("clamp", clamp::apply),
    ("leaky_relu", leaky_relu::apply),
    ("join_relu", join_relu::apply),
];

/// Apply all rules; nodes that nothing reads are removed after each.
pub(super) fn apply(draft: &mut Draft<'_>) {
    dead::apply(draft);
    for (_, rule) in RULES {
        rule(draft);
        dead::apply(draft);
    }
}
