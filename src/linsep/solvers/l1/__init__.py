"""L1 penalties: working sets, prox-Newton, coordinate descent."""
