use super::init::{DAYS, Draft};
use super::{CliError, Out};
use crate::config::{Card, Node, load_node};
use privet_net::Identity;
use privet_net::certs::CertificateInfo;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A certificate with fewer days left than this is warned about.
pub(super) const SOON: i64 = 30;

/// Options of `privet certs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a key and a certificate.
    New {
        /// Name in the certificate, for people.
        #[arg(long)]
        name: String,
        /// Write cert.pem and key.pem here.
        #[arg(long, default_value = ".")]
        dir: PathBuf,
        /// Days it lasts.
        #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
    },
    /// Show a certificate, and the card to send to other operators.
    Show(Which),
    /// Print the fingerprint only.
    Fingerprint(Which),
    /// Replace a node's key and certificate; prints the new card.
    Renew {
        /// The node.
        #[arg(long, default_value = "node.toml")]
        config: PathBuf,
        /// Days the new certificate lasts.
        #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
    },
    /// Exit with code 4 when a certificate is expired, not yet valid, or ends too soon.
    Check {
        #[command(flatten)]
        which: Which,
        /// Days that must be left.
        #[arg(long, default_value_t = 0)]
        days_left: i64,
    },
}

/// Which certificate.
#[derive(Debug, clap::Args)]
struct Which {
    /// A certificate file, PEM; the node's own when absent.
    certificate: Option<PathBuf>,
    /// The node.
    #[arg(long, default_value = "node.toml", conflicts_with = "certificate")]
    config: PathBuf,
    /// JSON for machines.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown {
    file: PathBuf,
    name: String,
    fingerprint: String,
    valid_from: String,
    valid_until: String,
    days_left: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<String>,
}

/// Make, show, renew or check certificates.
pub fn run(args: Args, out: &mut Out) -> Result<(), CliError> {
    match args.what {
        What::New { name, dir, days } => new(&name, &dir, days, out),
        What::Show(which) => show(&which, out),
        What::Fingerprint(which) => {
            let shown = which.read()?;
            if which.json { out.json(&shown) } else { out.line(shown.fingerprint) }
        }
        What::Renew { config, days } => renew(&config, days, out),
        What::Check { which, days_left } => check(&which, days_left, out),
    }
}

/// A new key and certificate that last `days` from now.
pub(super) fn generate(name: &str, days: u32) -> Result<Identity, CliError> {
    Ok(Identity::generate_days(name, days.into())?)
}

fn new(name: &str, dir: &Path, days: u32, out: &mut Out) -> Result<(), CliError> {
    let identity = generate(name, days)?;
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    identity.write(&cert, &key, false)?;
    out.line(format_args!("wrote {} and {} (keep the key on this machine)", cert.display(), key.display()))?;
    out.line(format_args!("fingerprint {}", identity.fingerprint()))
}

impl Which {
    fn read(&self) -> Result<Shown, CliError> {
        if let Some(file) = &self.certificate {
            return Ok(Shown::of(file, CertificateInfo::from_pem_file(file)?, None));
        }
        let node = load_node(&self.config)?;
        let info = CertificateInfo::from_pem_file(&node.certificate)?;
        let card = card(&node, &info);
        Ok(Shown::of(&node.certificate, info, card))
    }
}

impl Shown {
    fn of(file: &Path, info: CertificateInfo, card: Option<Card>) -> Shown {
        let (valid_from, valid_until) = info.days();
        Shown {
            file: file.to_owned(),
            fingerprint: info.fingerprint.to_string(),
            days_left: info.days_left(),
            name: info.name,
            valid_from,
            valid_until,
            card: card.map(|c| c.to_string()),
        }
    }
}

/// The node's card; `None` where its address is not known yet.
fn card(node: &Node, info: &CertificateInfo) -> Option<Card> {
    let address = match node.me.listens() {
        true => Some(Draft::open(&node.deployment).ok()?.address(&node.me)?),
        false => None,
    };
    Some(Card { place: node.me.clone(), address, fingerprint: info.fingerprint })
}

fn show(which: &Which, out: &mut Out) -> Result<(), CliError> {
    let s = which.read()?;
    if which.json {
        return out.json(&s);
    }
    out.line(format_args!("file         {}", s.file.display()))?;
    out.line(format_args!("name         {}", s.name))?;
    out.line(format_args!("valid        {} to {} ({} days left)", s.valid_from, s.valid_until, s.days_left))?;
    out.line(format_args!("fingerprint  {}", s.fingerprint))?;
    match s.card {
        Some(card) => out.line(format_args!("card         {card}")),
        None => Ok(()),
    }
}

fn renew(config: &Path, days: u32, out: &mut Out) -> Result<(), CliError> {
    let node = load_node(config)?;
    let identity = generate(&node.me.to_string(), days)?;
    identity.write(&node.certificate, &node.key, true)?;
    let mut draft = Draft::open(&node.deployment)?;
    let address = draft.address(&node.me);
    let card = Card { place: node.me.clone(), address, fingerprint: identity.fingerprint() };
    draft.add(&card, true)?;
    draft.save()?;
    out.line(format_args!("renewed {} until {}", node.certificate.display(), identity.info().days().1))?;
    out.line("Restart this node. The others refuse it until they have the new card:\n")?;
    out.line(format_args!("  privet init --replace --join '{card}'"))
}

fn check(which: &Which, days_left: i64, out: &mut Out) -> Result<(), CliError> {
    let shown = which.read()?;
    let (sound, problem) = verdict(&which.info()?, days_left);
    if which.json {
        out.json(&serde_json::json!({ "ok": sound, "problem": problem, "certificate": shown }))?;
    } else {
        out.line(format_args!("{}: {}", shown.file.display(), problem.as_deref().unwrap_or("ok")))?;
    }
    if sound { Ok(()) } else { out.flush().and(Err(CliError::unsound())) }
}

impl Which {
    fn info(&self) -> Result<CertificateInfo, CliError> {
        match &self.certificate {
            Some(file) => Ok(CertificateInfo::from_pem_file(file)?),
            None => Ok(CertificateInfo::from_pem_file(&load_node(&self.config)?.certificate)?),
        }
    }
}

/// Whether a certificate can be used for `days_left` days more, and what is wrong or will be soon.
pub(super) fn verdict(info: &CertificateInfo, days_left: i64) -> (bool, Option<String>) {
    let (from, until) = info.days();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |d| d.as_secs() as i64);
    if now < info.not_before {
        (false, Some(format!("not valid before {from}; is this machine's clock right?")))
    } else if now > info.not_after {
        (false, Some(format!("expired on {until}; run `privet certs renew`")))
    } else if info.days_left() < days_left {
        (false, Some(format!("{} days left (until {until}); run `privet certs renew`", info.days_left())))
    } else if info.days_left() < SOON {
        (true, Some(format!("{} days left (until {until}); run `privet certs renew` soon", info.days_left())))
    } else {
        (true, None)
    }
}
