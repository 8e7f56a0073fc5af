"""Private training: capture of a step, optimisers, and the programs that parties run."""
