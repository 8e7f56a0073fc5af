use super::{Deployment, Endpoint, Place, Timeouts};
use privet_net::Terms;

impl Deployment {
    /// What must be the same in every node's file. Nodes compare it when they connect (see [`privet_net::hello`]): a party
    /// whose file says another security would release shares that the others have not verified, and one with another
    /// role's place would send a result to somebody else.
    ///
    /// What may differ: the deployment's name and the path of its plan (the plan itself is compared by its hash),
    /// addresses, because a node behind another network reaches a peer in another way and knows it by its certificate,
    /// and clients without a role, who may ask for the status alone.
    pub fn terms(&self) -> Terms {
        // Without a wildcard: whoever adds a field decides here whether nodes have to agree on it.
        let Deployment {
            name: _,
            plan: _,
            protocol,
            security,
            parties,
            dealer,
            clients: _,
            roles,
            timeouts,
            parameters,
        } = self;
        let Timeouts { connect, step, heartbeat } = timeouts;
        let mut terms = vec![
            ("protocol".to_owned(), protocol.to_string()),
            ("security".to_owned(), security.to_string()),
            ("the number of parties".to_owned(), parties.len().to_string()),
        ];
        for (name, value) in parameters.all(protocol.facts()) {
            terms.push((format!("{protocol}.{name}"), value));
        }
        // Each is the bound of one side on what the other does, or on how long it takes.
        for (name, timeout) in [("connect", connect), ("step", step), ("heartbeat", heartbeat)] {
            terms.push((format!("timeouts.{name}"), format!("{} s", timeout.as_secs())));
        }
        for (role, place) in roles.all() {
            terms.push((format!("roles.{role}"), place.to_string()));
        }
        let endpoints = parties.iter().enumerate().map(|(i, e)| (Place::Party(i as u8), e));
        for (place, Endpoint { address: _, fingerprint }) in
            endpoints.chain(dealer.iter().map(|e| (Place::Dealer, e)))
        {
            terms.push((format!("the certificate of {place}"), fingerprint.to_string()));
        }
        // In the order of places, each once.
        let mut playing: Vec<&Place> = roles.all().map(|(_, place)| place).collect();
        playing.retain(|place| matches!(place, Place::Client(_)));
        playing.sort();
        playing.dedup();
        for place in playing {
            let fingerprint = self.fingerprint(place).map_or_else(String::new, ToString::to_string);
            terms.push((format!("the certificate of {place}"), fingerprint));
        }
        Terms::new(terms)
    }
}
