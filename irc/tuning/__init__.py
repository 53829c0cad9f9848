"""Choosing by measuring: candidates for an operation, each built, run and timed, and what was found
kept.

    candidate    what may be chosen, as plain data; the error where nothing can be
    problem      what is tuned: a small module of its own, and how a candidate gets into it
    candidates   schedules near the default one, by kind of kernel
    waves        which candidates are built first, and which others are worth it
    builds       threads that build them, for a GPU while others are timed
    measurers    who builds and times them: threads of this process, or workers
    measuring    a problem with a candidate as something that runs, and its time
    replays      its time on a GPU
    rounds       rounds of times, in turn, until one candidate is the fastest
    pool, worker processes that measure, one a device
    store        what was found, kept in irc's cache and on a Redis server
    open_problems  problems whose candidates are being built and timed
    session      what a compile shares; `choose`, `choose_all`

The room is below the passes: it runs them by a pipeline's text.
"""

from irc.tuning.candidate import Candidate, NoValidChoicesError
from irc.tuning.problem import Problem
from irc.tuning.session import choose, choose_all

__all__ = ["Candidate", "NoValidChoicesError", "Problem", "choose", "choose_all"]
