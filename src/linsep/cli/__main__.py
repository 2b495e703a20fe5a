"""``python -m linsep.cli``."""

from linsep.cli import command

command()
