"""``python -m linsep``: the command line, as ``linsep`` runs it."""

from linsep.cli import command

if __name__ == "__main__":
    command()
