use super::{Args, Draft, copy_plan, node_text, private_dir, refuse_existing, refuse_unknown, write_new};
use crate::cli::{CliError, Out, certs};
use crate::config::{Card, Place};

/// This machine's node of a real deployment: key, certificate, node file, and a deployment that lacks the others.
pub(super) fn run(me: &Place, args: &Args, out: &mut Out) -> Result<(), CliError> {
    match (me.listens(), &args.address) {
        (true, None) => {
            let cause = format!("{me} is dialled by the others, so they need its address");
            return Err(CliError::usage(cause, "add `--address HOST:PORT`"));
        }
        (false, Some(_)) if !args.each_client => {
            return Err(CliError::usage("clients are never dialled", "leave `--address` out"));
        }
        (false, Some(address)) if !address.is_loopback() => {
            let cause =
                format!("a client listens for its own programs alone, and others could reach {address}");
            return Err(CliError::usage(cause, "leave `--address` out, or give a port of 127.0.0.1"));
        }
        _ => {}
    }
    let setting = args.setting()?;
    refuse_unknown(setting.protocol, &setting.nodes(), me)?;
    let dir = &args.dir;
    refuse_existing(dir)?;
    private_dir(dir)?;
    let deployment = dir.join("deployment.toml");
    let mut draft = Draft::new(&deployment, args.name.as_deref().unwrap_or_default(), &setting)?;
    if let Some(plan) = &args.plan {
        copy_plan(plan, dir)?;
    }
    let identity = certs::generate(&me.to_string(), args.days)?;
    identity.write(&dir.join("cert.pem"), &dir.join("key.pem"), false)?;
    write_new(&dir.join("node.toml"), node_text(me, "deployment.toml", None, None).as_bytes())?;
    let address = args.address.clone().filter(|_| me.listens());
    let card = Card { place: me.clone(), address, fingerprint: identity.fingerprint() };
    draft.add(&card, false)?;
    if let (Place::Client(_), Some(own)) = (me, &args.address) {
        draft.set_own_address(me, own)?;
    }
    draft.save()?;

    if args.json {
        return out.json(&serde_json::json!({
            "deployment": deployment,
            "config": dir.join("node.toml"),
            "card": card.to_string(),
        }));
    }
    let shown = dir.display();
    out.line(format_args!(
        "wrote {shown}/node.toml, {shown}/deployment.toml, {shown}/cert.pem and {shown}/key.pem"
    ))?;
    out.line(setting.collusion())?;
    let to = match (setting.each_client, me) {
        (false, _) => "every other operator",
        (true, Place::Client(_)) => "the server's operator",
        (true, _) => "the operator of each client",
    };
    out.line(format_args!("\nSend this card to {to}, by a way on which nobody can change it:\n"))?;
    out.line(format_args!("  {card}\n"))?;
    out.line("Add the cards that come back:\n")?;
    out.line(format_args!("  privet init --dir {shown} --join 'CARD' ..."))?;
    if args.plan.is_none() {
        out.line(format_args!("\nPut the compiled plan at {shown}/plan.json."))?;
    }
    Ok(())
}
