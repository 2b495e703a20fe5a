"""scikit-learn pipelines that end in a linear model.

``take_apart`` separates a pipeline into its preprocessing steps and its model; every function that accepts a model
(``verify``, ``summary``, ``tune``, ``save``, ``export``, ``write_report``) uses it.
"""

from linsep.pipelines.parts import (
    Parts,
    final_step,
    require_parts,
    stack,
    take_apart,
    take_rows,
)

__all__ = ["Parts", "final_step", "require_parts", "stack", "take_apart", "take_rows"]
