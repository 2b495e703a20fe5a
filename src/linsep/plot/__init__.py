"""Figures of linear classification in one style, legible in print and for colour-blind readers.

Two features
    ``separability``, ``separators``, ``boundary``, ``effect_of_strength``
Sketches of the theory
    ``losses``, ``geometry``, ``step_sizes``
Curves
    ``validation_curve``, ``risks``, ``updates_against_bound``, ``coefficients``
Animation
    ``perceptron_animation``, a page with a player or a GIF

Functions with one panel take ``ax=None`` and return the matplotlib Axes; those with several return an array of
them. They raise ``BadInput`` with a message that names the argument that cannot be drawn. Classes and curves differ in
marker or line style, never in colour alone. Needs matplotlib.
"""

from linsep.plot.animation import perceptron_animation
from linsep.plot.curves import coefficients, risks, updates_against_bound, validation_curve
from linsep.plot.planes import boundary, effect_of_strength, separability, separators
from linsep.plot.sketches import geometry, losses, step_sizes

__all__ = [
    "boundary",
    "coefficients",
    "effect_of_strength",
    "geometry",
    "losses",
    "perceptron_animation",
    "risks",
    "separability",
    "separators",
    "step_sizes",
    "updates_against_bound",
    "validation_curve",
]
