"""Learning the observer's costs from its stops; section 4.1, arXiv:2205.15376."""
