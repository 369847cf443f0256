"""What becomes of a system under a trigger, when requests are taken as a fluid?

`line` is one service, fast and to the last digit; `network` is a whole graph with its policies.
"""

from tidegate.analysis.fluid.course import Course
from tidegate.analysis.fluid.line import Change, Line, Run, jittered, run, series, smallest
from tidegate.analysis.fluid.network import simulate_graph

__all__ = [
    "Change",
    "Course",
    "Line",
    "Run",
    "jittered",
    "run",
    "series",
    "simulate_graph",
    "smallest",
]
