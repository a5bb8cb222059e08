"""Claims about models while they learn: a block is a training run, and PyTorch trains it."""
