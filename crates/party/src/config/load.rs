use super::node::NO_ENCRYPTION;
use super::{ConfigError, Deployment, Node, parse_deployment, parse_node};
use std::path::Path;

/// A node together with the deployment it belongs to, both checked and with paths resolved.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// This process.
    pub node: Node,
    /// Everybody.
    pub deployment: Deployment,
}

impl Loaded {
    /// Read `node.toml` and the deployment it names, and check that they fit together.
    pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
        let node = load_node(path)?;
        let deployment = load_deployment(&node.deployment)?;
        if deployment.fingerprint(&node.me).is_none() {
            let problem = format!("{} is not in {}", node.me, node.deployment.display());
            let remedy = "add its table with `privet init --join CARD`, or correct `me`";
            return Err(ConfigError::invalid("me", problem, remedy).in_file(path));
        }
        check_insecure(&node, &deployment).map_err(|e| e.in_file(path))?;
        check_key_mode(&node.key)?;
        Ok(Loaded { node, deployment })
    }

    /// Roles that this node plays.
    pub fn roles(&self) -> Vec<&str> {
        self.deployment.roles.of(&self.node.me)
    }
}

/// Read and check a `node.toml`; its paths become relative to the working directory.
pub fn load_node(path: &Path) -> Result<Node, ConfigError> {
    let node = parse_node(&read(path)?).map_err(|e| e.in_file(path))?;
    Ok(node.relative_to(path.parent().unwrap_or(Path::new(""))))
}

/// Read and check a `deployment.toml`; its plan's path becomes relative to the working directory.
pub fn load_deployment(path: &Path) -> Result<Deployment, ConfigError> {
    let mut deployment = parse_deployment(&read(path)?).map_err(|e| e.in_file(path))?;
    deployment.plan = path.parent().unwrap_or(Path::new("")).join(&deployment.plan);
    Ok(deployment)
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

/// Plain TCP between machines shows everybody on the way the seeds and masked values of every job, which together are the data.
/// One word that is easily left behind after a test must not do that.
pub fn check_insecure(node: &Node, deployment: &Deployment) -> Result<(), ConfigError> {
    if !node.insecure || node.insecure_anywhere {
        return Ok(());
    }
    let places = deployment.places();
    let others = places.iter().filter_map(|place| deployment.address(place));
    match others.chain(&node.listen).find(|address| !address.is_loopback()) {
        None => Ok(()),
        Some(address) => Err(ConfigError::invalid(
            "insecure",
            format!(
                "nothing would be encrypted or authenticated, and {address} is not on this machine: whoever is on the way \
                 could read all data and take any place"
            ),
            format!("remove the key; or, where nothing is secret, write insecure = \"{NO_ENCRYPTION}\""),
        )),
    }
}

/// A private key that others on the machine can read is refused, as ssh does.
fn check_key_mode(path: &Path) -> Result<(), ConfigError> {
    let meta =
        std::fs::metadata(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let problem =
                format!("{} has mode {mode:04o}: others on this machine can use it", path.display());
            return Err(ConfigError::invalid("key", problem, format!("chmod 600 {}", path.display())));
        }
    }
    #[cfg(not(unix))]
    let _ = meta;
    Ok(())
}
