// Losses as functions of the margin m, for a chunk of rows at a time: value, slope l'(m), curvature l''(m), and the
// convex conjugate l*(-u) at a dual variable u = -slope. src/linsep/losses/ is the reference, and tests check that both
// agree. A loss is a struct of branch-free vector functions.
#pragma once
#include "core/api.hpp"
#include "core/simd.hpp"

namespace linsep::LINSEP_ARCH {

// Functions of a loss on n numbers; n is a multiple of VL.
struct LossOps {
    void (*at)(int n, Shape shape, const double* m, double* value, double* slope, double* curvature);
    void (*conjugate)(int n, Shape shape, const double* u, double* value, double* inside);
    void (*derivatives)(int n, Shape shape, const double* m, double* slope,
                        double* curvature);  // at() without the value
    // the value, and the largest |slope| within e of m
    void (*enclose)(int n, Shape shape, const double* m, const double* e, double* value, double* steepest);
};
LossOps ops(LossId id);  // compiled once per instruction set: core/losses.cpp

namespace {

struct Point {
    vd value, slope, curvature;
};
// A loss L also has steepest(p, m, e): the largest |slope| on [m - e, m + e], given p = L::at(m). A rounding error e of
// the margin changes the loss by at most e times that, whatever the dual point is.

// l*(-u), and whether u lies in its domain; outside it the value must not be used.
struct Conjugate {
    vd value;
    vi inside;
};

struct Logistic {
    static Point at(vd m, Shape) {
        const vd e = vexp(-vabs(m));
        // log1p(e) = k ln2 + 2 atanh((e - k)/(2 + e + k)), k = [e > sqrt 2 - 1]; one division serves both quotients.
        const vd k = select(e > 0.41421356237309503, splat(1.0), vd{});
        const vd one = 1.0 + e, two = 2.0 + e + k;
        const vd inverse = 1.0 / (one * two);
        const vd r = inverse * two;  // 1 / (1 + e)
        const vd log1p = k * 0.69314718055994530942 + twice_atanh((e - k) * (inverse * one));
        const vd er = e * r;
        return {vmax(-m, vd{}) + log1p, -select(m >= 0.0, er, r), er * r};
    }
    static vd steepest(const Point& p, vd, vd e, Shape) { return vmin(0.25 * e - p.slope, splat(1.0)); }
    static Conjugate conjugate(vd u, Shape) {
        // (1 - u) log(1 - u), accurate for small u: add the rounding error of 1 - u times the derivative
        // 1 + log(1 - u), whose logarithm is of order u and neglected
        const vd rest = 1.0 - u;
        const vd lost = (1.0 - rest) - u;
        return {u * vlog(u) + (rest * vlog(rest) + lost), (u >= 0.0) & (rest >= 0.0)};
    }
};

struct Exponential {
    static Point at(vd m, Shape) {
        const vd e = select(m < -709.0, splat(__builtin_inf()), vexp(-m));  // vexp clamps its argument
        return {e, -e, e};
    }
    // exp(e) <= 1 + 2 e for e <= 1
    static vd steepest(const Point& p, vd, vd e, Shape) {
        return select(e <= 1.0, -p.slope * (1.0 + 2.0 * e), splat(__builtin_inf()));
    }
    static Conjugate conjugate(vd u, Shape) { return {u * vlog(u) - u, u >= 0.0}; }
};

struct Squared {
    static Point at(vd m, Shape shape) {
        const vd r = shape.centre - m;
        return {r * r, -2.0 * r, splat(2.0)};
    }
    static vd steepest(const Point& p, vd, vd e, Shape) { return vabs(p.slope) + 2.0 * e; }
    static Conjugate conjugate(vd u, Shape shape) { return {0.25 * u * u - shape.centre * u, u == u}; }
};

struct SquaredHinge {
    static Point at(vd m, Shape) {
        const vd r = vmax(1.0 - m, vd{});
        return {r * r, -2.0 * r, select(m < 1.0, splat(2.0), vd{})};
    }
    static vd steepest(const Point& p, vd m, vd e, Shape) { return select(m - e >= 1.0, vd{}, 2.0 * e - p.slope); }
    static Conjugate conjugate(vd u, Shape) { return {0.25 * u * u - u, u >= 0.0}; }
};

struct HuberisedHinge {
    static Point at(vd m, Shape shape) {
        const double width = shape.width;
        const vd r = vmax(1.0 - m, vd{});
        const vd q = vmin(r, splat(width));  // the quadratic part of r
        const vi bent = (m < 1.0) & (r <= splat(width));
        return {q * (r - 0.5 * q) / width, -q / width, select(bent, splat(1.0 / width), vd{})};
    }
    static vd steepest(const Point& p, vd m, vd e, Shape shape) {
        return select(m - e >= 1.0, vd{}, vmin(e / shape.width - p.slope, splat(1.0)));
    }
    static Conjugate conjugate(vd u, Shape shape) { return {0.5 * shape.width * u * u - u, (u >= 0.0) & (u <= 1.0)}; }
};

struct Huber {
    static Point at(vd m, Shape shape) {
        const vd r = shape.centre - m, width = splat(shape.width);
        const vd q = vmin(vmax(r, -width), width);
        return {q * (r - 0.5 * q), -q, select(vabs(r) <= width, splat(1.0), vd{})};
    }
    static Conjugate conjugate(vd u, Shape shape) {
        return {0.5 * u * u - shape.centre * u, vabs(u) <= splat(shape.width)};
    }
    static vd steepest(const Point& p, vd, vd e, Shape shape) { return vmin(vabs(p.slope) + e, splat(shape.width)); }
};

struct Hinge {
    static Point at(vd m, Shape) { return {vmax(1.0 - m, vd{}), select(m < 1.0, splat(-1.0), vd{}), vd{}}; }
    static vd steepest(const Point&, vd m, vd e, Shape) { return select(m - e >= 1.0, vd{}, splat(1.0)); }
    static Conjugate conjugate(vd u, Shape) { return {-u, (u >= 0.0) & (u <= 1.0)}; }
};

struct Absolute {
    static Point at(vd m, Shape shape) {
        const vd r = shape.centre - m;
        return {vabs(r), select(r > 0.0, splat(-1.0), select(r < 0.0, splat(1.0), vd{})), vd{}};
    }
    static vd steepest(const Point&, vd, vd, Shape) { return splat(1.0); }
    static Conjugate conjugate(vd u, Shape shape) { return {-shape.centre * u, vabs(u) <= 1.0}; }
};

struct PerceptronLoss {
    static Point at(vd m, Shape) { return {vmax(-m, vd{}), select(m < 0.0, splat(-1.0), vd{}), vd{}}; }
    static vd steepest(const Point&, vd m, vd e, Shape) { return select(m - e >= 0.0, vd{}, splat(1.0)); }
    static Conjugate conjugate(vd u, Shape) { return {vd{}, (u >= 0.0) & (u <= 1.0)}; }
};

// Arrays of a chunk are padded to a multiple of VL, so loops need no tail.
inline int padded(int n) { return (n + VL - 1) / VL * VL; }

// Call f(L{}) for the loss L with this id.
template <class F>
auto with_loss(LossId id, F f) {
    switch (id) {
        case LossId::logistic:
            return f(Logistic{});
        case LossId::exponential:
            return f(Exponential{});
        case LossId::squared:
            return f(Squared{});
        case LossId::squared_hinge:
            return f(SquaredHinge{});
        case LossId::huberised_hinge:
            return f(HuberisedHinge{});
        case LossId::huber:
            return f(Huber{});
        case LossId::hinge:
            return f(Hinge{});
        case LossId::absolute:
            return f(Absolute{});
        default:
            return f(PerceptronLoss{});
    }
}

// Largest curvature of a loss; for the exponential loss, whose curvature is unbounded, that at margin 0.
inline double curvature_bound(LossSpec spec) {
    switch (spec.id) {
        case LossId::logistic:
            return 0.25;
        case LossId::squared:
        case LossId::squared_hinge:
            return 2.0;
        case LossId::huberised_hinge:
            return 1.0 / spec.shape.width;
        default:
            return 1.0;
    }
}

}  // namespace
}  // namespace linsep::LINSEP_ARCH
