use std::fmt;

/// Everything that keeps a model from being compiled, found in one go.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckReport {
    /// The problems, in the order of the model.
    pub problems: Vec<Problem>,
}

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The operation.
    pub op: String,
    /// The module it is in; empty for the top level or the whole model.
    pub layer: String,
    /// Where the model calls it; empty when unknown.
    pub source: String,
    /// What is wrong with it.
    pub what: String,
    /// What the user can do.
    pub remedy: String,
}

impl CheckReport {
    pub(crate) fn one(problem: Problem) -> Self {
        CheckReport { problems: vec![problem] }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.problems.len();
        writeln!(f, "{n} problem{} in the model:", if n == 1 { "" } else { "s" })?;
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "- {}", self.op)?;
        if !self.layer.is_empty() {
            write!(f, " in {}", self.layer)?;
        }
        write!(f, ": {}", self.what)?;
        if !self.source.is_empty() {
            write!(f, "\n    at {}", self.source)?;
        }
        write!(f, "\n    remedy: {}", self.remedy)
    }
}

impl std::error::Error for CheckReport {}
