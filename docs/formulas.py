r"""Formulas of docstrings, which are plain text for a terminal or a tooltip, in LaTeX for the site.

``DISPLAYED`` has lines of their own, ``INLINE`` what stands between double backticks.
"""

from __future__ import annotations

_PENALTY = (
    r"&\frac{1 - \mathtt{l1\_ratio}}{2} \lVert w\rVert^2 + \mathtt{l1\_ratio}\,\lVert w\rVert_1"
)
_MARGIN = r"y_i (x_i^\top w + b)"
DISPLAYED = {
    "(1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i loss(y_i (x_i.w + b))": (
        rf"{_PENALTY} \\ &\quad + C \sum_i s_i\, \ell\bigl({_MARGIN}\bigr)"
    ),
    "(1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i loss(t_i - x_i.w - b)": (
        rf"{_PENALTY} \\ &\quad + C \sum_i s_i\, \ell(t_i - x_i^\top w - b)"
    ),
    "(1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i log(1 + exp(-y_i (x_i.w + b)))": (
        rf"{_PENALTY} \\ &\quad + C \sum_i s_i \log\bigl(1 + e^{{-{_MARGIN}}}\bigr)"
    ),
    "1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i (x_i.w + b))        (or its square)": (
        rf"\tfrac12 \lVert w\rVert^2 + C \sum_i s_i \max\bigl(0, 1 - {_MARGIN}\bigr) \quad\text{{(or its square)}}"
    ),
    "1/2 sum_c |w_c|^2 + C sum_i s_i max_c (z_ic + 1[c != y_i] - z_{i,y_i}),   z_ic = x_i.w_c + b_c": (
        r"\tfrac12 \sum_c \lVert w_c\rVert^2 + C \sum_i s_i \max_c \bigl(z_{ic} + 1[c \ne y_i] - z_{i,y_i}\bigr), \quad"
        r" z_{ic} = x_i^\top w_c + b_c"
    ),
    "w <- (1 - eta_k/(C S)) w - eta_k y_i loss'(m_i) x_i,      b <- b - eta_k y_i loss'(m_i)": (
        r"w \leftarrow \Bigl(1 - \frac{\eta_k}{C S}\Bigr) w - \eta_k\, y_i\, \ell'(m_i)\, x_i, \qquad"
        r" b \leftarrow b - \eta_k\, y_i\, \ell'(m_i)"
    ),
    "1/2 (|w|^2 + b^2) + C sum_i s_i max(0, 1 - y_i (x_i.w + b))^2": (
        rf"\tfrac12 \bigl(\lVert w\rVert^2 + b^2\bigr) + C \sum_i s_i \max\bigl(0, 1 - {_MARGIN}\bigr)^2"
    ),
    "1/2 (|w|^2 + b^2) + C sum_i s_i max(0, |t_i - x_i.w - b| - epsilon)": (
        r"\tfrac12 \bigl(\lVert w\rVert^2 + b^2\bigr)"
        r" + C \sum_i s_i \max\bigl(0, \lvert t_i - x_i^\top w - b\rvert - \varepsilon\bigr)"
    ),
    "sum_i s_i (t_i - x_i.w - b)^2 + alpha |w|^2": (
        r"\sum_i s_i (t_i - x_i^\top w - b)^2 + \alpha \lVert w\rVert^2"
    ),
    "sum_i s_i (t_i - x_i.w - b)^2": (r"\sum_i s_i (t_i - x_i^\top w - b)^2"),
    "sum_i s_i (t_i - x_i.w - b)^2 / (2 S) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)": (
        r"\frac{1}{2S} \sum_i s_i (t_i - x_i^\top w - b)^2"
        r" + \alpha \Bigl(\mathtt{l1\_ratio}\,\lVert w\rVert_1"
        r" + \frac{1 - \mathtt{l1\_ratio}}{2} \lVert w\rVert^2\Bigr)"
    ),
    "sum_i s_i (t_i - x_i.w - b)^2 / (2 S) + alpha |w|_1": (
        r"\frac{1}{2S} \sum_i s_i (t_i - x_i^\top w - b)^2 + \alpha \lVert w\rVert_1"
    ),
    "sum_i s_i pinball(t_i - x_i.w - b) / S + alpha |w|_1": (
        r"\frac{1}{S} \sum_i s_i\, \rho(t_i - x_i^\top w - b) + \alpha \lVert w\rVert_1"
    ),
    "alpha penalty(w) + sum_i s_i loss(t_i - x_i.w - b) / n": (
        r"\alpha\, \mathrm{penalty}(w) + \frac1n \sum_i s_i\, \ell(t_i - x_i^\top w - b)"
    ),
    "alpha penalty(w) + sum_i s_i loss(y_i (x_i.w + b)) / n": (
        r"\alpha\, \mathrm{penalty}(w) + \frac1n \sum_i s_i\, \ell\bigl(y_i (x_i^\top w + b)\bigr)"
    ),
    "S sigma + sum_i s_i sigma H((t_i - x_i.w - b)/sigma) + alpha |w|^2": (
        r"S\sigma + \sum_i s_i\, \sigma H\Bigl(\frac{t_i - x_i^\top w - b}{\sigma}\Bigr) + \alpha \lVert w\rVert^2"
    ),
}
INLINE = {
    "l*(-u) = -u": r"\ell^*(-u) = -u",
    "l*(-u) = 0": r"\ell^*(-u) = 0",
    "l*(-u) = u^2/4 - u": r"\ell^*(-u) = u^2/4 - u",
    "l*(-u) = width u^2/2 - u": r"\ell^*(-u) = \mathtt{width}\, u^2/2 - u",
    "l*(-u) = u log u + (1 - u) log(1 - u)": r"\ell^*(-u) = u \log u + (1 - u) \log(1 - u)",
    "l*(-u) = u log u - u": r"\ell^*(-u) = u \log u - u",
    "l*(-u) = -centre u": r"\ell^*(-u) = -\mathtt{centre}\, u",
    "l*(-u) = u^2/4 - centre u": r"\ell^*(-u) = u^2/4 - \mathtt{centre}\, u",
    "l*(-u) = u^2/2 - centre u": r"\ell^*(-u) = u^2/2 - \mathtt{centre}\, u",
    "l*(-u) = epsilon |u| - centre u": r"\ell^*(-u) = \varepsilon \lvert u\rvert - \mathtt{centre}\, u",
    "l*(-u) = u^2/4 + epsilon |u| - centre u": (
        r"\ell^*(-u) = u^2/4 + \varepsilon \lvert u\rvert - \mathtt{centre}\, u"
    ),
    "factor l*(q / factor)": r"\mathtt{factor}\; \ell^*(q / \mathtt{factor})",
    "0 <= u <= 1": r"0 \le u \le 1",
    "-1 <= u <= 1": r"-1 \le u \le 1",
    "u >= 0": r"u \ge 0",
    "|u| <= width": r"\lvert u\rvert \le \mathtt{width}",
    "quantile - 1 <= u <= quantile": r"\mathtt{quantile} - 1 \le u \le \mathtt{quantile}",
    "errors <= sum_i l(m_i)": r"\text{errors} \le \sum_i \ell(m_i)",
    "l(t a + (1 - t) b) <= t l(a) + (1 - t) l(b)": r"\ell(t a + (1 - t) b) \le t\,\ell(a) + (1 - t)\,\ell(b)",
    "0 <= t <= 1": r"0 \le t \le 1",
    "|w.x + b| / |w|": r"\lvert w^\top x + b\rvert / \lVert w\rVert",
    "x - (w.x + b) w / |w|^2": r"x - (w^\top x + b)\, w / \lVert w\rVert^2",
    "lambda_i >= 0": r"\lambda_i \ge 0",
    "sum_i lambda_i |x_i|^2 - |sum_i lambda_i x_i|^2": (
        r"\sum_i \lambda_i \lVert x_i\rVert^2 - \bigl\lVert \sum_i \lambda_i x_i \bigr\rVert^2"
    ),
    "2 sum_{k <= d} binom(n - 1, k)": r"2 \sum_{k \le d} \binom{n - 1}{k}",
    "|v_j| + sqrt(2 L gap sum_i s_i x_ij^2) < l1": (
        r"\lvert v_j\rvert + \sqrt{2 L\, \mathtt{gap} \textstyle\sum_i s_i x_{ij}^2} < l_1"
    ),
}


def typeset(line: str) -> list[str]:
    """Lines of reStructuredText for a line of a docstring; elsewhere |w| is a norm, not a substitution."""
    if line.lstrip().startswith((">>> ", "... ")):
        return [line]
    if line.strip() in DISPLAYED:
        return [".. math::", "", "   " + DISPLAYED[line.strip()]]
    pieces = line.split("``")
    if len(pieces) % 2 == 0:
        return [line.replace("|", r"\|")]
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            pieces[place] = piece.replace("|", r"\|")
        elif piece in INLINE:
            pieces[place] = f":math:`{INLINE[piece]}`"
        else:
            pieces[place] = f"``{piece}``"
    return ["".join(pieces)]
