from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV

X, y = load_breast_cancer(return_X_y=True)
LogisticRegression().fit(X, y)
search = GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
LogisticRegression(max_iter=2).fit(X, y)
