use super::hash_text;
use crate::cli::{CliError, Out};
use crate::report::{bits, bytes, count};
use privet_family::{Class, Forecast, PlannedOpening, When};
use privet_plan::Plan;
use privet_plan::cost::{Network, Security, estimate};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Listed {
    #[serde(rename = "plan")]
    name: String,
    hash: String,
    protocol: &'static str,
    security: Security,
    masked_bits_per_session: u64,
    /// While what the run uses up is prepared.
    masked_bits_per_preparation: u64,
    masked_bits_per_run: u64,
    revealed_bits_per_run: u64,
    /// What a run uses up of what is stored: at the party with the most, and at one with the fewest.
    stored_bytes_per_run: [u64; 2],
    openings: Vec<PlannedOpening>,
}

/// The openings of a plan.
pub(super) fn of(plan: &Plan, family: &dyn Forecast) -> Listed {
    let openings = family.openings(plan);
    let total =
        |test: &dyn Fn(&PlannedOpening) -> bool| openings.iter().filter(|o| test(o)).map(|o| o.bits).sum();
    let run = estimate(plan, family, &family.rates(), &Network::LAN).total;
    Listed {
        name: plan.name.clone(),
        hash: hash_text(plan),
        protocol: family.protocol(),
        security: family.security(),
        masked_bits_per_session: total(&|o| o.class == Class::Masked && o.when == When::Session),
        masked_bits_per_preparation: total(&|o| o.class == Class::Masked && o.when == When::Preparation),
        masked_bits_per_run: total(&|o| o.class == Class::Masked && o.when == When::Run),
        revealed_bits_per_run: total(&|o| o.class != Class::Masked),
        stored_bytes_per_run: [run.key_bytes.most(), run.key_bytes.least()],
        openings,
    }
}

/// For people.
pub(super) fn show(list: &Listed, remark: &str, out: &mut Out) -> Result<(), CliError> {
    out.line(format_args!(
        "Openings of plan {} under {}, {} ({})\n",
        list.name, list.protocol, list.security, list.hash
    ))?;
    let width = list.openings.iter().map(|o| o.layer.chars().count()).max().unwrap_or(0).clamp(5, 32);
    out.line(format_args!(
        "{:>5}  {:<width$}  {:<28} {:>12} {:>11}  who learns what",
        "step", "layer", "what", "elements", "size"
    ))?;
    for o in &list.openings {
        let (elements, size) = (count(o.elements), bits(o.bits));
        let told = match (&o.class, o.when) {
            (Class::Masked, When::Session) => "masked: nobody learns anything (once a session)".to_string(),
            (Class::Masked, When::Preparation) => "masked: nobody learns anything (before a run)".into(),
            (Class::Masked, When::Run) => "masked: nobody learns anything".into(),
            (Class::Revealed { to }, _) => format!("REVEALED to {to}"),
        };
        out.line(format_args!(
            "{:>5}  {:<width$}  {:<28} {elements:>12} {size:>11}  {told}",
            o.step, o.layer, o.what
        ))?;
    }
    out.line(format_args!(
        "\nA run opens {} masked and reveals {}; sharing the weights opens {} masked, once a session.",
        bits(list.masked_bits_per_run),
        bits(list.revealed_bits_per_run),
        bits(list.masked_bits_per_session)
    ))?;
    if list.stored_bytes_per_run != [0; 2] {
        let [most, fewest] = list.stored_bytes_per_run.map(bytes);
        out.line(format_args!(
            "It uses up {most} of what is stored at one party, and {fewest} at each other one."
        ))?;
    }
    out.line(remark)
}
