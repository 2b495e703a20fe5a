"""Interior point methods: losses with a kink, the squared hinge, absolute penalties."""
