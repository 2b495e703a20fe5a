"""Fit a model with the installed wheel and check its certificate."""

from sklearn.datasets import load_breast_cancer

import linsep

X, y = load_breast_cancer(return_X_y=True)
model = linsep.LogisticRegression(C=10.0).fit(X, y)
assert model.certificate_.certified, model.certificate_
print(linsep.__file__)
print(linsep.verify(model, X, y))
