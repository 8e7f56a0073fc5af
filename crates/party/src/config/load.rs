use super::node::NO_ENCRYPTION;
use super::{
    CLIENT_PARTY, ConfigError, Deployment, DeploymentFile, Node, Place, Server, parse_deployment,
    parse_deployment_file, parse_node,
};
use std::path::Path;

/// A node together with the deployment it belongs to, both checked and with paths resolved.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// This process.
    pub node: Node,
    /// Everybody.
    pub deployment: Deployment,
}

/// The server's node together with all its clients' deployments.
#[derive(Clone, Debug)]
pub struct Host {
    /// This process.
    pub node: Node,
    /// Everybody.
    pub server: Server,
}

impl Host {
    /// Read `node.toml` of party 0 and the deployment file it names, in which party 1 is each client.
    pub fn load(path: &Path) -> Result<Host, ConfigError> {
        let node = load_node(path)?;
        let server = match load_file(&node.deployment)? {
            DeploymentFile::EachClient(server) => *server,
            DeploymentFile::One(_) => {
                let problem = "the deployment has one client, or several that share its parties";
                let remedy = "start it with `privet party`, or write `each_client = true` to [parties.1]";
                return Err(ConfigError::invalid("deployment", problem, remedy).in_file(path));
            }
        };
        if node.me != Place::Party(0) {
            let problem = format!("this node is {}, not the server", node.me);
            let remedy = "give the node file of party:0; a client starts `privet party`";
            return Err(ConfigError::invalid("me", problem, remedy).in_file(path));
        }
        check_certified(&node).map_err(|e| e.in_file(path))?;
        check_key_mode(&node.key)?;
        Ok(Host { node, server })
    }

    /// The server's part in a client's deployment, with a store of its own.
    pub fn of(&self, client: &str) -> Option<Loaded> {
        let deployment = self.server.of(client)?.clone();
        let mut node = self.node.clone();
        for dir in [&mut node.store, &mut node.checkpoints] {
            *dir = dir.join(client);
        }
        Some(Loaded { node, deployment })
    }
}

impl Loaded {
    /// Read `node.toml` and the deployment it names, and check that they fit together. The node of a server's client is party 1 of
    /// that client's deployment.
    pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
        let node = load_node(path)?;
        let file = load_file(&node.deployment)?;
        let loaded = Loaded::within(node, file).map_err(|e| e.in_file(path))?;
        let Loaded { node, deployment } = &loaded;
        check_insecure(node, deployment).map_err(|e| e.in_file(path))?;
        check_key_mode(&node.key)?;
        Ok(loaded)
    }

    /// A node and its deployment, which the file may have among others; files that they name are not looked at.
    pub fn within(mut node: Node, file: DeploymentFile) -> Result<Loaded, ConfigError> {
        let absent = |node: &Node| {
            let problem = format!("{} is not in {}", node.me, node.deployment.display());
            ConfigError::invalid(
                "me",
                problem,
                "add its table with `privet init --join CARD`, or correct `me`",
            )
        };
        let deployment = match (file, &node.me) {
            (DeploymentFile::One(deployment), _) => *deployment,
            (DeploymentFile::EachClient(server), Place::Client(name)) => {
                let deployment = server.of(name).cloned().ok_or_else(|| absent(&node))?;
                check_certified(&node)?;
                node.me = Place::Party(CLIENT_PARTY);
                deployment
            }
            (DeploymentFile::EachClient(_), Place::Party(0)) => {
                let problem = "this node is the server of many clients, and has no deployment of its own";
                return Err(ConfigError::invalid("me", problem, "start it with `privet serve`"));
            }
            (DeploymentFile::EachClient(_), _) => return Err(absent(&node)),
        };
        match deployment.fingerprint(&node.me) {
            Some(_) => Ok(Loaded { node, deployment }),
            None => Err(absent(&node)),
        }
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

/// Read and check the `deployment.toml` of one deployment; its plan's path becomes relative to the working directory.
pub fn load_deployment(path: &Path) -> Result<Deployment, ConfigError> {
    let deployment = parse_deployment(&read(path)?).map_err(|e| e.in_file(path))?;
    Ok(relative(deployment, path))
}

/// The same of a file that may also have a deployment for each client of a server.
pub fn load_file(path: &Path) -> Result<DeploymentFile, ConfigError> {
    Ok(match parse_deployment_file(&read(path)?).map_err(|e| e.in_file(path))? {
        DeploymentFile::One(deployment) => DeploymentFile::One(Box::new(relative(*deployment, path))),
        DeploymentFile::EachClient(server) => {
            DeploymentFile::EachClient(Box::new(server.relative_to(path.parent().unwrap_or(Path::new("")))))
        }
    })
}

fn relative(mut deployment: Deployment, file: &Path) -> Deployment {
    deployment.plan = file.parent().unwrap_or(Path::new("")).join(&deployment.plan);
    deployment
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

/// A server knows its clients by their certificates alone, so there is no such thing as a client without one.
fn check_certified(node: &Node) -> Result<(), ConfigError> {
    match node.insecure {
        true => {
            let problem =
                "a server tells its clients apart by their certificates, which plain TCP does not have";
            Err(ConfigError::invalid("insecure", problem, "remove the key"))
        }
        false => Ok(()),
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
