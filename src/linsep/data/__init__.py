"""Rows of data in blocks, and the one thing that is ever asked of them: a sum over all rows."""

from linsep.data.block import Block
from linsep.data.dataset import Dataset
from linsep.data.memory import Memory, readable

__all__ = ["Block", "Dataset", "Memory", "readable"]
