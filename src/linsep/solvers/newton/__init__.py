"""Newton's method for smooth losses: on all rows, from a subsample, on a cluster, in one native call."""
