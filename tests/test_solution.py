"""Limits of a fit, as they are handed from one method to the next."""

from linsep.solution import Stop


def test_limits_less_what_is_spent():
    stop = Stop(1e-3, time_limit=10.0, max_passes=5.0, max_short_steps=3)
    assert stop.after(4.0) == Stop(1e-3, 6.0, 5.0, 3)
    assert stop.after(4.0, passes=2.0) == Stop(1e-3, 6.0, 3.0, 3)


def test_something_is_left_of_every_limit():
    assert Stop(1e-3, 1.0, 2.0).after(7.0, passes=9.0) == Stop(1e-3, 1e-3, 1.0)


def test_no_limit_stays_none():
    assert Stop(1e-3).after(7.0, passes=9.0) == Stop(1e-3)
