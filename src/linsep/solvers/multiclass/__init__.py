"""Losses that couple the classes: softmax, and the multiclass hinge of Crammer and Singer."""
