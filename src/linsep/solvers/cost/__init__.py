"""What each method would cost on a problem."""
