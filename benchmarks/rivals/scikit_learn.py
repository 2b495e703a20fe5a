"""scikit-learn: LogisticRegression, LinearSVC and SVC(kernel="linear").

LogisticRegression with lbfgs, newton-cg, newton-cholesky and saga leaves the intercept free; its liblinear, and
LinearSVC, penalise it as the weight of a column of ones. The tolerances bound gradients, not objectives. saga is swept
over its number of epochs instead, with a tolerance that never stops it: the best that any tolerance could do.
SVC is LIBSVM: its intercept is free, its cost grows faster than the square of the rows.
"""

from __future__ import annotations

from rivals.contest import EPOCHS, TOLERANCES, Answer, Contestant, Fit, Task, anything, linear


def _logistic(solver: str) -> object:
    def prepare(task: Task) -> Fit:
        from sklearn.linear_model import LogisticRegression

        def fit(tol: float) -> Answer:
            model = LogisticRegression(C=task.C, solver=solver, tol=tol, max_iter=100_000)
            return linear(model.fit(task.X, task.y))

        return fit

    return prepare


def _saga(task: Task) -> Fit:
    from sklearn.linear_model import LogisticRegression

    def fit(epochs: float) -> Answer:
        model = LogisticRegression(
            C=task.C, solver="saga", tol=1e-14, max_iter=int(epochs), random_state=0
        )
        return linear(model.fit(task.X, task.y))

    return fit


def _liblinear(dual: bool) -> object:
    def prepare(task: Task) -> Fit:
        from sklearn.linear_model import LogisticRegression

        def fit(tol: float) -> Answer:
            model = LogisticRegression(
                C=task.C,
                solver="liblinear",
                dual=dual,
                tol=tol,
                max_iter=task.epochs(),
                random_state=0,
            )
            return linear(model.fit(task.X, task.y))

        return fit

    return prepare


def _svc(dual: bool, loss: str = "squared_hinge") -> object:
    def prepare(task: Task) -> Fit:
        from sklearn.svm import LinearSVC

        def fit(tol: float) -> Answer:
            model = LinearSVC(
                C=task.C, loss=loss, dual=dual, tol=tol, max_iter=task.epochs(), random_state=0
            )
            return linear(model.fit(task.X, task.y))

        return fit

    return prepare


def _libsvm(task: Task) -> Fit:
    from sklearn.svm import SVC

    def fit(tol: float) -> Answer:
        model = SVC(C=task.C, kernel="linear", tol=tol, cache_size=1000).fit(task.X, task.y)
        w = model.coef_.toarray() if task.sparse else model.coef_
        return w.ravel(), float(model.intercept_[0])

    return fit


def _can_factorise(task: Task) -> bool:
    return task.d <= 3_000


def _few_rows(task: Task) -> bool:
    return task.n <= 20_000 and task.C < float("inf")


def _has_penalty(task: Task) -> bool:
    return task.C < float("inf")


def _logistic_contestant(solver: str, takes: object = anything) -> Contestant:
    return Contestant(
        solver, ("logistic",), "free", "tol", TOLERANCES, _logistic(solver), "all", takes
    )


def _coordinates(name: str, loss: str, prepare: object) -> Contestant:
    return Contestant(name, (loss,), "penalised", "tol", TOLERANCES, prepare, "1", _has_penalty)


CONTESTANTS = (
    _logistic_contestant("lbfgs"),
    _logistic_contestant("newton-cg"),
    _logistic_contestant("newton-cholesky", _can_factorise),
    Contestant("saga", ("logistic",), "free", "epochs", EPOCHS, _saga, "1"),
    _coordinates("liblinear primal", "logistic", _liblinear(dual=False)),
    _coordinates("liblinear dual", "logistic", _liblinear(dual=True)),
    _coordinates("LinearSVC primal", "squared_hinge", _svc(dual=False)),
    _coordinates("LinearSVC dual", "squared_hinge", _svc(dual=True)),
    _coordinates("LinearSVC hinge", "hinge", _svc(dual=True, loss="hinge")),
    Contestant("SVC linear", ("hinge",), "free", "tol", TOLERANCES, _libsvm, "1", _few_rows),
)
