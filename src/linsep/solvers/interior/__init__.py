"""Interior point methods: losses with a kink, the squared hinge, L1 penalties."""
