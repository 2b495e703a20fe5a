"""Penalties on the weights, and the one place where the strength C is translated."""

from linsep.penalties.elastic_net import ElasticNet, RescaledElasticNet
from linsep.penalties.given import resolve
from linsep.penalties.group import GroupElasticNet
from linsep.penalties.protocol import Penalty

__all__ = ["ElasticNet", "GroupElasticNet", "Penalty", "RescaledElasticNet", "resolve"]
