//! Plans and graphs as JSON, and the hash that binds parties to one plan.

use crate::check::PlanError;
use crate::{Graph, Plan};

/// Largest plan or graph file read, in bytes. The largest real one (ResNet-152 with source lines) is far
/// below a megabyte; the bound keeps a foreign file from exhausting memory.
pub const MAX_JSON_BYTES: usize = 64 << 20;

const HASH_CONTEXT: &[u8] = b"privet plan v1\0";

impl Plan {
    /// Read and check a plan.
    pub fn from_json(bytes: &[u8]) -> Result<Plan, PlanError> {
        let plan: Plan = parse(bytes)?;
        plan.check()?;
        Ok(plan)
    }

    /// Canonical JSON: fields in declaration order, no white space, shortest floats that read back equal.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a plan has only string keys and finite lengths")
    }

    /// What parties compare before they run: BLAKE3 of a context string and [`Plan::to_json`].
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(HASH_CONTEXT);
        hasher.update(&self.to_json());
        *hasher.finalize().as_bytes()
    }
}

impl Graph {
    /// Read and check a captured model.
    pub fn from_json(bytes: &[u8]) -> Result<Graph, PlanError> {
        let graph: Graph = parse(bytes)?;
        graph.check()?;
        Ok(graph)
    }

    /// The JSON that [`Graph::from_json`] reads.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a graph has only string keys and finite lengths")
    }
}

pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, PlanError> {
    if bytes.len() > MAX_JSON_BYTES {
        return Err(PlanError::TooLarge { bytes: bytes.len() });
    }
    serde_json::from_slice(bytes).map_err(|e| PlanError::Json(e.to_string()))
}
