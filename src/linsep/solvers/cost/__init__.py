"""Cost model: predicted processor time of each method on a problem."""
