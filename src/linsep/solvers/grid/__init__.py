"""Many models at once: grids of C and folds."""
