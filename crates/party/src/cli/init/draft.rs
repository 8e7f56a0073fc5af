use super::{Setting, nodes, refuse_unknown};
use crate::cli::CliError;
use crate::config::{Address, CLIENT_PARTY, Card, Place, Protocol, parse_deployment_file};
use privet_family::{Facts, Parameters, Values};
use std::fs;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, value};

/// Party 1 of a server's clients.
const EACH_CLIENT: &str = "
# Each client below is party 1 of a deployment of its own, which the others have no part in.
[parties.1]
each_client = true
";

/// A deployment file that may still lack places. Edits keep the operator's comments and order.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    doc: DocumentMut,
}

impl Draft {
    /// A new deployment without places.
    pub fn new(path: &Path, name: &str, setting: &Setting) -> Result<Draft, CliError> {
        if !Place::valid_name(name) {
            let cause = format!("`{}` cannot name a deployment", name.escape_debug());
            return Err(CliError::usage(cause, "use letters, digits, `-`, `_` and `.`"));
        }
        // How many parties there are, their tables will say.
        let Setting { protocol, security, parties: _, parameters, roles, each_client } = setting;
        let collusion = setting.collusion();
        let roles: String =
            roles.all().map(|(role, place)| format!("{} = \"{place}\"\n", key(role))).collect();
        let text = format!(
            "# Who takes part. The same for everybody; nothing in it is secret.\n\
             # `privet init --join CARD` adds the card that another operator sent.\n\
             # {collusion}\n\
             name = \"{name}\"\n\
             protocol = \"{protocol}\"\n\
             security = \"{security}\"\n\
             plan = \"plan.json\"   # everybody needs the same plan: compare hashes with `privet plan show`\n\
             \n\
             # Who plays which role: a party or a client.\n\
             [roles]\n\
             {roles}\
             \n\
             # Seconds.\n\
             [timeouts]\n\
             connect = 30\n\
             step = 300\n\
             heartbeat = 5\n{}{}",
            own_table(protocol.facts(), parameters),
            if *each_client { EACH_CLIENT } else { "" }
        );
        Ok(Draft { path: path.to_owned(), doc: parse(path, &text)? })
    }

    /// Read a deployment, complete or not.
    pub fn open(path: &Path) -> Result<Draft, CliError> {
        let text = fs::read_to_string(path).map_err(|e| CliError::file("read", path, e))?;
        Ok(Draft { path: path.to_owned(), doc: parse(path, &text)? })
    }

    /// Pin a place. A place that is pinned to another certificate is changed only with `replace`.
    pub fn add(&mut self, card: &Card, replace: bool) -> Result<(), CliError> {
        if let Some(protocol) = self.protocol() {
            let facts = protocol.facts();
            let most = nodes(*facts.parties.end(), facts.may_have_dealer());
            refuse_unknown(protocol, &most, &card.place)?;
        }
        if self.each_client() && card.place == Place::Party(CLIENT_PARTY) {
            let cause = "party:1 is each client of this server, with a certificate of its own";
            return Err(CliError::failed(cause, "give the card of the client, `client:NAME#FINGERPRINT`"));
        }
        let table = self.table(&card.place)?;
        let fingerprint = card.fingerprint.to_string();
        let old = table.get("fingerprint").and_then(Item::as_str).unwrap_or_default();
        if !replace && !old.is_empty() && old != fingerprint {
            return Err(CliError::failed(
                format!("{} is pinned to another certificate ({old})", card.place),
                "ask its operator by another way whether the certificate was renewed; if so add `--replace`",
            ));
        }
        if let Some(address) = &card.address {
            table["address"] = value(address.to_string());
        }
        table["fingerprint"] = value(fingerprint);
        Ok(())
    }

    /// Whether party 1 is each client.
    fn each_client(&self) -> bool {
        let party = self.doc.get("parties").and_then(|parties| parties.get(CLIENT_PARTY.to_string()));
        party.and_then(|party| party.get("each_client")?.as_bool()).unwrap_or(false)
    }

    /// Where a client of a server serves its own programs.
    pub fn set_own_address(&mut self, client: &Place, address: &Address) -> Result<(), CliError> {
        self.table(client)?["address"] = value(address.to_string());
        Ok(())
    }

    /// The protocol, if the file names one that this version runs.
    fn protocol(&self) -> Option<Protocol> {
        self.doc.get("protocol")?.as_str()?.parse().ok()
    }

    /// Where a place is dialled, if the file says so already.
    pub fn address(&self, place: &Place) -> Option<Address> {
        let item = match place {
            Place::Party(i) => self.doc.get("parties")?.get(i.to_string())?,
            Place::Dealer => self.doc.get("dealer")?,
            Place::Client(_) => return None,
        };
        item.get("address")?.as_str()?.parse().ok()
    }

    /// Why the deployment cannot run yet; `None` when it can.
    pub fn missing(&self) -> Option<String> {
        parse_deployment_file(&self.doc.to_string()).err().map(|e| format!("{e}; {}", e.remedy()))
    }

    /// Write the file in one step, so that a crash leaves the old or the new one.
    pub fn save(&self) -> Result<(), CliError> {
        let part = self.path.with_extension("toml.part");
        let failed = |e| CliError::file("write", &self.path, e);
        fs::write(&part, self.doc.to_string()).and_then(|()| fs::rename(&part, &self.path)).map_err(failed)
    }

    fn table(&mut self, place: &Place) -> Result<&mut Table, CliError> {
        let path = &self.path;
        let odd = || {
            CliError::failed(format!("{}: `{}` is not a table", path.display(), place.table()), "correct it")
        };
        let root = self.doc.as_table_mut();
        let (parent, key) = match place {
            Place::Dealer => (root, "dealer".to_string()),
            Place::Party(i) => (child(root, "parties", true).ok_or_else(odd)?, i.to_string()),
            Place::Client(name) => (child(root, "clients", true).ok_or_else(odd)?, name.clone()),
        };
        child(parent, &key, false).ok_or_else(odd)
    }
}

/// What follows for a family with parameters: its table. What is not set stands there at its default, as a comment.
fn own_table(facts: &Facts, set: &Parameters) -> String {
    let mut text = String::new();
    let comment = |set: bool| if set { "" } else { "# " };
    for (i, parameter) in facts.parameters.iter().enumerate() {
        if i == 0 {
            let any = facts.parameters.iter().any(|p| set.has(p));
            text += &format!("\n{}[{}]\n", comment(any), facts.name);
        }
        let value = parameter.text(set.get(parameter));
        let value = match parameter.values {
            Values::Number { .. } => value,
            Values::Words(_) => format!("\"{value}\""),
        };
        let said = format!("{} = {value}", parameter.name);
        text += &format!("{}{said:<26} # {}\n", comment(set.has(parameter)), parameter.about);
    }
    text
}

/// A role as a key of a table: one with a dot is quoted.
fn key(role: &str) -> String {
    if role.contains('.') { format!("\"{role}\"") } else { role.to_owned() }
}

fn child<'a>(parent: &'a mut Table, key: &str, implicit: bool) -> Option<&'a mut Table> {
    let fresh = || {
        let mut table = Table::new();
        table.set_implicit(implicit);
        Item::Table(table)
    };
    parent.entry(key).or_insert_with(fresh).as_table_mut()
}

fn parse(path: &Path, text: &str) -> Result<DocumentMut, CliError> {
    let remedy = "correct that line; docs/operators.md lists every key";
    text.parse().map_err(|e| CliError::failed(format!("{}: {e}", path.display()), remedy))
}
