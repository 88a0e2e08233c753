"""Training: rollouts, the paper's loop, runs on disk, evaluation."""
