"""Penalties on the weights, and the conversion of C to their internal weights."""

from linsep.penalties.elastic_net import ElasticNet, RescaledElasticNet
from linsep.penalties.given import resolve
from linsep.penalties.group import GroupElasticNet
from linsep.penalties.protocol import Penalty

__all__ = ["ElasticNet", "GroupElasticNet", "Penalty", "RescaledElasticNet", "resolve"]
