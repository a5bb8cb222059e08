"""From cases to findings: worlds, processes, chunks, verdicts."""
