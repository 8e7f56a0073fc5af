//! Which nodes of a plan this family refuses.

use crate::gate::{At, Kind, kind};
use crate::gates::linear;
use crate::hints::LEAST_SPARE;
use crate::packing::packing;
use privet_family::Products;
use privet_he::torus::{Link, PackingAim};
use privet_kernels::LinearShape;
use privet_plan::{Plan, Refusal};

/// One packing fits where any other one does.
const ANY: PackingAim = PackingAim { runs: 1, link: Link::Near };

/// Every node of a checked plan that has no gate here, or one that would be ruinous.
pub fn refusals(plan: &Plan) -> Vec<Refusal> {
    let mut all = Vec::new();
    for (id, node) in plan.nodes.iter().enumerate() {
        if let Kind::Lacks(what) = kind(&node.op) {
            all.push(Refusal::of(
                plan,
                id,
                format!("heot has no gate for {what}"),
                "take another family for this plan",
            ));
        }
        let at = At { plan, id };
        if linear::has_hint(&at)
            && let Err(why) = packing(&at, at.operand(1).frac + LEAST_SPARE, ANY)
        {
            all.push(Refusal::of(
                plan,
                id,
                format!("no packing: {why}"),
                "take another family for this plan",
            ));
        }
        let Some(products) = Products::of(plan, node).filter(|_| !linear::has_hint(&at)) else { continue };
        if let LinearShape::Conv2d(_) = products.shape {
            let remedy = "let the server own the filters";
            all.push(Refusal::of(
                plan,
                id,
                "a convolution with filters that the server does not know",
                remedy,
            ));
        } else if let Some((of, _)) = linear::matrices(&at)
            && let Err(why) = of.fits()
        {
            let problem =
                format!("a product of two secret matrices for which encryption has no parameters: {why}");
            all.push(Refusal::of(plan, id, problem, "use smaller matrices, or another family"));
        }
    }
    all
}
